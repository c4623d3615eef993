"""The data of a page, and the page around it."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from streaming.explain.page.data import MARKS, Page
from streaming.explain.page.writing import html_of
from streaming.explain.story.model import Trigger
from streaming.explain.story.words import rebalance_lines
from tests.contract.output.hostile_texts import unprintable
from tests.explain.page.pages import data_page, html_page
from tests.explain.page.scripted import ScriptedGroup, incident, large, told

MEGABYTE = 1_000_000


def _owned(page: Page, lane: int) -> Iterator[tuple[int, list[str]]]:
    """The partitions of a lane from each time on, as the page's script reads them."""
    times, flat = list(accumulate(page.times)), page.lanes[lane].owned
    for place, number in zip(accumulate(flat[::2]), accumulate(flat[1::2]), strict=True):
        yield times[place], [f"{topic}-{partition}" for topic, partition in _partitions(page, number)]


def _partitions(page: Page, number: int) -> list[tuple[str, int]]:
    places: list[int] = []
    for difference in page.sets[number]:
        before = places[-1] if places else -1
        places += range(before + 1, before - difference + 1) if difference < 0 else [before + difference]
    return [page.partitions[place] for place in places]


def _data_of(text: str) -> Any:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(data)


def test_a_lane_has_its_partitions_by_time() -> None:
    group = ScriptedGroup(topics=(("orders", 4),))
    group.start("a")
    first = next(iter(group.members))
    began = group.now
    group.sleep(10_000)
    group.start("b")
    group.expire(first)
    page = data_page(group)
    owned = list(_owned(page, 0))
    assert [partitions for _, partitions in owned] == [
        ["orders-0", "orders-1", "orders-2", "orders-3"],
        ["orders-0", "orders-1"],
        [],
    ]
    assert owned[0][0] == began - page.first
    assert list(_owned(page, 1))[-1][1] == ["orders-0", "orders-1", "orders-2", "orders-3"]


def test_a_client_that_is_started_again_stays_in_its_lane() -> None:
    group = ScriptedGroup()
    group.start("a", "b")
    leaving = next(member for member, client in group.members.items() if client == "b")
    group.leave(leaving)
    group.start("b")
    page = data_page(group)
    assert [(lane.name, len(lane.stays)) for lane in page.lanes] == [("a at /10.0.3.7", 1), ("b at /10.0.3.7", 2)]
    member_id, _, until, reason, was_expelled, _ = page.lanes[1].stays[0]
    assert (member_id, until is not None, was_expelled) == (leaving, True, 0)
    assert reason.startswith("left")


def test_two_members_of_one_client_at_a_time_have_two_lanes() -> None:
    group = ScriptedGroup()
    group.start("a")
    group.start("a")
    assert [lane.name for lane in data_page(group).lanes] == ["a at /10.0.3.7"] * 2


def test_the_cause_of_a_rebalance_points_to_its_lane_and_to_the_entries_of_the_journal() -> None:
    page = data_page(incident())
    expired = [one for one in page.rebalances if one.causes[0].trigger == "session expired"]
    assert [page.lanes[one.causes[0].lane].name for one in expired] == [
        "billing-5 at /10.0.3.9",
        "billing-6 at /10.0.3.9",
    ]
    assert [page.lanes[lane].name for lane, _ in expired[0].went] == ["billing-5 at /10.0.3.9"]
    first, last = expired[0].causes[0].entries
    assert 0 < first <= last


def test_a_rebalance_says_in_the_words_of_the_story_what_moved() -> None:
    story, _ = told(incident().journal)
    page = data_page(incident())
    lines = [[line.strip() for line in rebalance_lines(one)] for one in story.rebalances]
    assert all(one.moves in told_lines for one, told_lines in zip(page.rebalances, lines, strict=True) if one.moves)
    assert any(one.moves for one in page.rebalances)


@given(st.integers(1, 300), st.integers(0, 2_000))
def test_commits_are_counted_in_so_few_marks_that_the_page_stays_small(members: int, commits: int) -> None:
    group = ScriptedGroup()
    group.start(*(f"c-{number}" for number in range(min(members, 5))))
    for _ in range(commits % 50):
        group.sleep(1_000)
        group.commit()
    page = data_page(group)
    counted = sum(sum(lane.commits[1::2]) for lane in page.lanes)
    assert counted == (commits % 50) * min(members, 5)
    assert sum(len(lane.commits) // 2 for lane in page.lanes) <= MARKS


def test_a_page_of_200_members_and_500_rebalances_is_smaller_than_3_megabytes() -> None:
    assert len(html_page(large(), "large").encode()) < 3 * MEGABYTE


def test_a_page_stays_small_if_every_rebalance_moves_every_partition() -> None:
    # A fifth of the rebalances, to save time: what they take grows with their number.
    assert len(html_page(large(rebalances=100, shuffles=True), "large").encode()) < 3 * MEGABYTE / 4


def test_a_journal_that_begins_late_has_lanes_of_the_members_that_it_names() -> None:
    group = incident()
    whole, group.journal = len(group.journal), group.journal[3_000:]
    page = data_page(group)
    assert len(group.journal) < whole
    assert not page.is_complete
    assert any(stay[5] for lane in page.lanes for stay in lane.stays)
    assert page.rebalances


def test_the_page_has_all_of_its_data() -> None:
    page = data_page(incident())
    assert msgspec.convert(_data_of(html_of(page)), Page) == page


def test_the_page_loads_nothing_and_runs_only_its_own_script() -> None:
    text = html_page(incident())
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; ")
    for kind, parts in (("script", script), ("style", style)):
        (part,) = parts
        assert f"{kind}-src 'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" in policy
    assert not re.findall(r"""\b(?:src|href)\s*=|https?:|url\(|@import|\binnerHTML\b|\beval\b""", text)


def test_a_file_has_the_same_times_for_all_who_get_it() -> None:
    assert '<div id="picture" data-zone="UTC">' in html_page(incident())


def test_every_cause_has_a_colour() -> None:
    text = html_page(incident())
    (table,) = re.findall(r"const CATEGORY_OF = \{(.*?)\};", text, re.DOTALL)
    coloured = set(re.findall(r'^  "(.*?)": "\w+",$', table, re.MULTILINE))
    assert set(Trigger) - coloured == {Trigger.COORDINATOR_AWAY, Trigger.OTHER}


PIECES = (
    "</script>",
    "<script>",
    "<!--",
    "-->",
    "<",
    "&lt;",
    '"',
    "'",
    "\\u003c",
    "\u202e",
    "\u2028",
    "\x1b[2J",
    "\0",
    "\n",
)
HOSTILE = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_what_clients_choose_cannot_leave_the_data(group_id: str, client: str, reason: str) -> None:
    group = ScriptedGroup(group_id, ((client, 1),))
    group.start(client, reason=reason)
    group.leave(next(iter(group.members)), reason)
    text = html_page(group, group_id)
    page = _data_of(text)
    assert text.count("<script") == 2
    assert html.unescape(re.findall(r"<title>(.*?)</title>", text, re.DOTALL)[0]) == f"{page['group']}: rebalances"
    assert all(one.isprintable() for one in _strings(page))
    assert unprintable(text) == []


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _strings(one)
