"""The trace of a story: spans that nest, on tracks with names."""

import json
from collections import Counter
from itertools import pairwise
from typing import Any

from streaming.explain.page.trace import REBALANCES, trace_of
from tests.explain.page.scripted import incident, told


def _events() -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(trace_of(*told(incident().journal)))["traceEvents"]
    return events


def test_each_lane_and_the_rebalances_have_a_track_with_a_name() -> None:
    names = {event["tid"]: event["args"]["name"] for event in _events() if event["name"] == "thread_name"}
    assert names[REBALANCES] == "rebalances"
    assert [names[track] for track in sorted(names)][1:4] == [f"billing-{number} at /10.0.3.7" for number in (1, 2, 3)]
    assert {event.get("tid", REBALANCES) for event in _events()} == names.keys()


def test_every_rebalance_is_a_span_with_its_cause_and_its_two_phases() -> None:
    spans = [event for event in _events() if event["ph"] == "X" and event["tid"] == REBALANCES]
    names = Counter(span["name"] for span in spans if "args" not in span)
    assert names == {"joining": 26, "assignment": 26}
    (lost, *_) = [span for span in spans if span["name"].startswith("session expired")]
    assert lost["args"]["went"] == ["billing-5 at /10.0.3.9: its session timed out"]


def test_spans_of_a_lane_do_not_overlap() -> None:
    lanes: dict[int, list[tuple[int, int]]] = {}
    for event in _events():
        if event["ph"] == "X" and event["tid"] != REBALANCES:
            lanes.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    assert len(lanes) == 8
    for spans in lanes.values():
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_members_that_come_go_and_commit_are_instants() -> None:
    counts = Counter(event["name"] for event in _events() if event["ph"] == "i")
    assert (counts["joined"], counts["left"], counts["expelled"]) == (18, 10, 2)
    assert counts["commit"] > 1_000
