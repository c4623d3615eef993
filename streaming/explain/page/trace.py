"""A story in the trace-event format, which Perfetto and chrome://tracing open: a track of rebalances and one a lane.

Source: "Trace Event Format" of the Chromium project: complete events (``X``), instants (``i``) and metadata (``M``).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from streaming.contract.output.text import json_text, printable
from streaming.explain.page.lanes import Lane, Lanes, partitions_in_words
from streaming.explain.story.group_types import words_of
from streaming.explain.story.model import Rebalance, RefusedRequest, Story
from streaming.explain.story.words import sender_line

PROCESS = 1
REBALANCES = 0
"""The track of the rebalances; lanes have the tracks after it."""

Event = dict[str, Any]


def trace_of(story: Story, lanes: Lanes) -> bytes:
    """The trace as JSON. Its times are absolute, so that the traces of several groups can be shown together."""
    events = [
        {"ph": "M", "name": "process_name", "pid": PROCESS, "args": {"name": printable(f"group {story.group_id}")}},
        _track(REBALANCES, "rebalances"),
        *(event for one in story.rebalances for event in _of_rebalance(one, story.last)),
    ]
    for track, lane in enumerate(lanes.lanes, REBALANCES + 1):
        events.append(_track(track, lane.instance_id or lane.name))
        events += _of_lane(lane, track, story.last)
    if story.refused is not None:
        events += [_of_refusal(one, lanes.lanes) for one in story.refused.refusals]
    return json_text({"traceEvents": events, "displayTimeUnit": "ms"}).encode()


def _of_rebalance(one: Rebalance, last: int) -> Iterator[Event]:
    end = last if one.ended is None else one.ended
    reached = "" if one.generation is None else f" -> {one.generation}"
    details = {
        "because": [printable(cause.text) for cause in one.causes],
        "certain": one.cause.is_certain,
        "member": printable(one.cause.member or ""),
        "came": [printable(change.name) for change in one.came],
        "went": [printable(f"{change.name}: {change.reason}") for change in one.went],
    }
    yield _span(REBALANCES, f"{one.cause.trigger}{reached}", one.began, end, details)
    if one.joined is not None:
        first, second = words_of(one.group_type).spans
        yield _span(REBALANCES, first, one.began, one.joined)
        yield _span(REBALANCES, second, one.joined, end)


def _of_lane(lane: Lane, track: int, last: int) -> Iterator[Event]:
    for (time, held), (until, _) in pairwise([*lane.owned, (last, frozenset())]):
        if held:
            yield _span(track, partitions_in_words(held), time, until)
    for stay in lane.stays:
        if not stay.began_before:
            yield _instant(track, "joined", stay.since, {"member": printable(stay.member_id)})
        if stay.until is not None:
            name = "expelled" if stay.was_expelled else "left"
            yield _instant(track, name, stay.until, {"reason": printable(stay.reason or "")})
    for time in lane.commits:
        yield _instant(track, "commit", time, {})


def _of_refusal(one: RefusedRequest, lanes: Sequence[Lane]) -> Event:
    """The first of refused requests that are alike: in the lane of its member or client, otherwise of no track."""
    tracks = enumerate(lanes, REBALANCES + 1)
    of_member = {stay.member_id: track for track, lane in tracks for stay in lane.stays}
    of_client = {lane.name: track for track, lane in enumerate(lanes, REBALANCES + 1)}
    track = of_member.get(one.member, of_client.get(one.name, REBALANCES))
    details = {
        "sender": printable(sender_line(one)),
        "because": printable(one.text),
        "times": one.count,
        "request": f"{one.partition}:{one.offset}",
    }
    return _instant(track, f"refused {one.api}: {one.error}", one.first, details)


def _track(number: int, name: str) -> Event:
    return {"ph": "M", "name": "thread_name", "pid": PROCESS, "tid": number, "args": {"name": printable(name)}}


def _span(track: int, name: str, begin: int, end: int, details: Event | None = None) -> Event:
    span = {"ph": "X", "pid": PROCESS, "tid": track, "name": name, "ts": begin * 1000, "dur": (end - begin) * 1000}
    return span if details is None else {**span, "args": details}


def _instant(track: int, name: str, time: int, details: Event) -> Event:
    return {"ph": "i", "s": "t", "pid": PROCESS, "tid": track, "name": name, "ts": time * 1000, "args": details}
