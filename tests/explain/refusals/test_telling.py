"""Refused requests in the story: in words, as JSON, of one member, on the page and in the trace."""

import json
import re
from dataclasses import replace

import msgspec
import pytest

from streaming.contract.output.text import printable
from streaming.explain.page.data import OUTSIDE, REFUSALS, Page, page_of
from streaming.explain.page.lanes import Lanes
from streaming.explain.page.of_group import page_of_story
from streaming.explain.page.trace import REBALANCES, trace_of
from streaming.explain.story.model import Refused, RefusedRequest, Story
from streaming.explain.story.of_member import story_of
from streaming.explain.story.words import lines_of
from tests.explain.page.scripted import told
from tests.explain.refusals.judged import refused
from tests.logic.driver import Driven, Joined, listing

HOSTILE = "</script><script>alert(1)</script>\u202e\x1b[2J"


def incident(client: str = "wrong") -> Driven:
    """A group of two that refuses an old commit of a member, and joins of a client with another assignor."""
    driven = Driven()
    member, _ = driven.stable_group(2)
    driven.now += 1_000
    driven.commit(replace(member, generation_id=0), {("orders", 0): 120})
    for _ in range(2):
        driven.now += 1_000
        driven.join(client=client, protocols=listing(f"{client}-assignor"))
    return driven


def told_with_refusals(driven: Driven) -> tuple[Story, Lanes]:
    """The story and the lanes of a group, with its refused requests."""
    story, lanes = told(driven.journal, driven.group_id)
    return msgspec.structs.replace(story, refused=refused(driven)), lanes


def the_page(driven: Driven) -> Page:
    """The data of its page."""
    return page_of(*told_with_refusals(driven), [])


@pytest.fixture
def driven() -> Driven:
    return incident()


def test_the_words_have_a_summary_and_each_refusal_at_its_time(driven: Driven) -> None:
    story, _ = told_with_refusals(driven)
    lines = list(lines_of(story))
    assert lines[1] == "Refused: 3 requests, among them a commit, most from wrong at /127.0.0.1 (2)"
    times = [line.split("  ")[0] for line in lines if re.match(r"\d{4}-", line)]
    assert times == sorted(times)
    assert len(times) == len(story.rebalances) + 2
    (place,) = [number for number, line in enumerate(lines) if "refused OffsetCommit: ILLEGAL_GENERATION" in line]
    assert lines[place + 1].startswith("  client-0 at /127.0.0.1, member client-0-") or lines[place + 1].startswith(
        "  client at /127.0.0.1, member client-0-"
    )
    assert re.search(r"\[request 0:\d+; entry \d+ of the journal\]$", lines[place + 2])
    assert any("refused JoinGroup: INCONSISTENT_GROUP_PROTOCOL, 2 times until " in line for line in lines)


def test_a_story_without_refusals_says_why_they_are_not_told(driven: Driven) -> None:
    story, _ = told(driven.journal, driven.group_id)
    unread = msgspec.structs.replace(story, refused=Refused(None, notes=["Refused requests are not shown: too many."]))
    lines = list(lines_of(unread))
    assert "Refused requests are not shown: too many." in lines
    assert not any(line.startswith("Refused: ") for line in lines)
    assert "refused" not in "".join(lines_of(story)).lower()


def test_the_json_has_the_refusals_with_their_evidence(driven: Driven) -> None:
    story, _ = told_with_refusals(driven)
    data = json.loads(msgspec.json.encode(story))["refused"]
    assert (data["requests"], data["commits"], data["busiestCount"]) == (3, 1, 2)
    commit = data["refusals"][0]
    assert (commit["error"], commit["generation"], commit["count"]) == ("ILLEGAL_GENERATION", 0, 1)
    assert [one["record"] for one in commit["evidence"]] == ["GenerationStarted"]


def test_the_story_of_a_member_has_the_refusals_that_it_had_or_won(driven: Driven) -> None:
    story, _ = told_with_refusals(driven)
    assert story.refused is not None
    commit, join = story.refused.refusals

    def of(*members: str) -> list[RefusedRequest]:
        part = story_of(story, members).refused
        assert part is not None
        return part.refusals

    assert of(commit.member) == [commit]
    assert of("wrong") == [join]
    assert of("nobody") == []


def test_refusals_are_marks_in_the_lane_of_their_member_or_of_none(driven: Driven) -> None:
    page = the_page(driven)
    commit, join = page.refusals
    assert page.lanes[commit.lane].stays[0][0] == driven.log[-3].body.member_id  # type: ignore[attr-defined]
    assert (join.lane, join.count, join.last - join.first) == (OUTSIDE, 2, 1_000)
    assert commit.what == "OffsetCommit: ILLEGAL_GENERATION"
    assert page.first + join.last == driven.now == page.last
    assert page.refused == {
        "requests": 3,
        "commits": 1,
        "busiest": "wrong at /127.0.0.1",
        "busiestCount": 2,
        "notes": [],
    }


def test_a_page_of_a_story_without_requests_has_none(driven: Driven) -> None:
    page = page_of(*told(driven.journal, driven.group_id), [])
    assert (page.refusals, page.refused) == ([], None)


def test_a_page_has_the_newest_of_very_many_refusals_and_says_so(driven: Driven) -> None:
    story, lanes = told_with_refusals(driven)
    assert story.refused is not None
    one = story.refused.refusals[0]
    many = [msgspec.structs.replace(one, first=one.first + n, last=one.last + n) for n in range(REFUSALS + 5)]
    page = page_of(
        msgspec.structs.replace(story, refused=msgspec.structs.replace(story.refused, refusals=many)), lanes, []
    )
    assert len(page.refusals) == REFUSALS
    assert page.refused is not None
    assert page.refused["notes"] == ["5 earlier refusals are not on the page."]


def test_the_trace_has_an_instant_for_each_refusal(driven: Driven) -> None:
    events = json.loads(trace_of(*told_with_refusals(driven)))["traceEvents"]
    commit, join = [event for event in events if event["name"].startswith("refused ")]
    assert (commit["ph"], join["ph"]) == ("i", "i")
    assert commit["tid"] != REBALANCES
    assert (join["tid"], join["args"]["times"]) == (REBALANCES, 2)


def test_what_clients_choose_cannot_leave_the_page_or_control_a_terminal() -> None:
    driven = incident(HOSTILE)
    driven.commit(Joined(HOSTILE, 3, HOSTILE), {(HOSTILE, 0): 1})
    story, lanes = told_with_refusals(driven)
    text = page_of_story(story, lanes)
    assert text.count("<script") == 2
    assert "\u202e" not in text
    assert all(printable(line).isprintable() for line in lines_of(story))
    trace = json.loads(trace_of(story, lanes))["traceEvents"]
    shown = [str(value) for event in trace for value in (event["name"], *event.get("args", {}).values())]
    assert all(one.isprintable() for one in shown)


def test_long_names_are_shortened() -> None:
    driven = incident("n" * 10_000)
    driven.commit(Joined("m" * 10_000, 3), {("t" * 10_000, number): 1 for number in range(10)})
    assert all(len(line) < 2_000 for line in lines_of(told_with_refusals(driven)[0]))
