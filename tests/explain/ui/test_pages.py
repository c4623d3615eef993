"""The pages of given groups, through their addresses."""

import re
from base64 import b64encode
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.explain.live.columns import COLUMNS
from streaming.explain.live.group_types import Holder, MemberNow
from streaming.explain.live.partitions import NO_END, PartitionNow
from streaming.explain.offsets.plan import Position
from streaming.explain.ui.fleet_pages import MAX_ROWS
from streaming.explain.ui.routes import MAX_SEARCHED
from tests.explain.live.given import THREE, row
from tests.explain.page.scripted import ScriptedGroup, incident
from tests.explain.ui.given import GivenSource, get
from tests.explain.ui.reading import ReadPage

MEMBER = MemberNow("reader-1-abc", "static-7", "reader-1", "/10.0.3.7", "orders: 0, 1\nreturns: 2")


def page_of(source: GivenSource, path: str, **values: str) -> ReadPage:
    response = get(source, path, **values)
    assert response.status == HTTPStatus.OK, response.page
    return ReadPage(response.page)


def group_ids(page: ReadPage) -> list[str]:
    """The ids of the groups to which a page links, in its order."""
    return [_values(one)["id"] for one in page.links if one.startswith("/group?")]


def test_the_list_has_the_columns_of_top_and_its_line() -> None:
    page = page_of(GivenSource(*THREE), "/")
    heads = [text.rstrip(" ▼▲") for text in page.texts("a")]
    assert [column.title for column in COLUMNS] == [text for text in heads if text in {one.title for one in COLUMNS}]
    for part in ("one, process 42", "backlog 1,234", "3 groups, 6 members", "0.5 rebalances/min"):
        assert part in page.shown


def test_the_list_sorts_by_rebalances_at_first_and_then_as_its_heads_say() -> None:
    source = GivenSource(*THREE)
    first = page_of(source, "/")
    assert group_ids(first) == ["audit", "orders", "billing"]
    assert ("aria-sort", "descending") in first.attributes
    (reverse,) = [one for one in first.links if "sort=rebalances" in one]
    assert group_ids(page_of(source, "/", **_values(reverse))) == ["billing", "orders", "audit"]
    (by_group,) = [one for one in first.links if "sort=group" in one]
    assert group_ids(page_of(source, "/", **_values(by_group))) == ["audit", "billing", "orders"]
    assert group_ids(page_of(source, "/", sort="nothing")) == ["audit", "orders", "billing"]


def _values(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query, True).items()}


def test_a_filter_finds_ids_and_states_and_stays_when_the_order_changes() -> None:
    page = page_of(GivenSource(*THREE), "/", filter="IL")
    assert group_ids(page) == ["billing"]
    assert all("filter=IL" in one for one in page.links if "sort=" in one)
    assert group_ids(page_of(GivenSource(*THREE), "/", filter="stab")) == ["audit", "orders"]


def test_of_many_groups_the_first_ones_are_listed() -> None:
    page = page_of(GivenSource(*(row(f"group-{number}") for number in range(MAX_ROWS + 1))), "/")
    assert len(group_ids(page)) == MAX_ROWS
    assert f"the first {MAX_ROWS} of {MAX_ROWS + 1}" in page.shown


def test_a_group_shows_its_members_offsets_lag_story_and_rebalances() -> None:
    source = GivenSource(row("billing"), members={"billing": [MEMBER]})
    source.stories["billing"] = incident()
    holder = Holder(TopicPartition("orders", 0), "reader-1-abc", "reader-1", "/10.0.3.7")
    source.partitions = [
        PartitionNow(TopicPartition("orders", 0), Position(1_000), 1_005, holder),
        PartitionNow(TopicPartition("orders", 1), Position(7), None, None, NO_END),
    ]
    page = page_of(source, "/group", id="billing")
    for part in ("reader-1-abc", "static-7", "/10.0.3.7", "orders: 0, 1", "returns: 2", "consumer, range"):
        assert part in page.shown
    cells = page.texts("td")
    assert cells[cells.index("1000") : cells.index("1000") + 4] == ["1000", "1005", "5", "reader-1-abc at /10.0.3.7"]
    assert cells[-4:] == ["-", "-", "-", NO_END]
    assert "Now: Stable since" in page.shown
    assert "Last rebalances: 20 of 26" in page.shown
    assert page.tags.count("summary") == 20
    assert "flapping" in page.shown.lower()
    timelines = [_values(one) for one in page.links if one.startswith("/timeline?")]
    assert [one.get("since") for one in timelines] == ["2h", "24h", None]
    assert {one["id"] for one in timelines} == {"billing"}


def test_a_group_without_an_answer_of_the_brokers_shows_why_and_what_is_known() -> None:
    source = GivenSource(row("billing", lag=70), away=True)
    page = page_of(source, "/group", id="billing")
    assert page.shown.count("no broker answers") == 2
    assert "70" in page.texts("dd")


def test_a_group_of_the_past_has_its_story() -> None:
    source = GivenSource()
    source.stories["gone"] = ScriptedGroup("gone")
    source.stories["gone"].start("a")
    page = page_of(source, "/group", id="gone")
    assert "The coordinator answers GROUP_ID_NOT_FOUND." in page.shown
    assert page.tags.count("summary") == 1


@pytest.mark.parametrize("standing", ["", "epoch 3"])
def test_each_cell_of_a_member_has_a_head_and_no_assignment_is_cut(standing: str) -> None:
    assignment = f"orders: {', '.join(map(str, range(100)))}"
    member = MEMBER._replace(assignment=assignment, standing=standing)
    page = page_of(GivenSource(row("billing"), members={"billing": [member]}), "/group", id="billing")
    assert page.tags.count("th") == page.tags.count("td") == (6 if standing else 5)
    assert ("EPOCH" in page.texts("th")) == bool(standing)
    assert assignment in page.texts("td")


def test_each_rebalance_has_its_time_cause_and_duration_in_its_line() -> None:
    source = GivenSource(row("billing"))
    source.stories["billing"] = incident()
    page = page_of(source, "/group", id="billing")
    times = [value for name, value in page.attributes if name == "datetime"]
    assert times == [value for name, value in page.attributes if name == "title" and value in times]
    assert "2025-11-24T17:32:08.090Z" in times
    texts = page.texts("time", "span")
    begin = texts.index("2025-11-24 17:32:08 UTC")
    what, took, why = texts[begin + 1 : begin + 4]
    assert (what, took) == ("session expired → generation 24", "40.1 s")
    assert "no request of it for 45 s" in why


def test_the_groups_page_has_the_picture_of_its_timeline_with_the_same_data() -> None:
    source = GivenSource(row("billing"))
    source.stories["billing"] = incident()
    group, timeline = (get(source, path, id="billing") for path in ("/group", "/timeline"))
    data, script = (
        [re.findall(pattern, one.page, re.DOTALL) for one in (group, timeline)]
        for pattern in (r'<script type="application/json" id="data">(.*?)</script>', r"<script>(.*?)</script>")
    )
    assert len(data[0]) == len(script[0]) == 1
    assert (data[0], script[0]) == (data[1], script[1])
    picture = r'<div id="picture" data-zone="(\w+)">'
    assert [re.findall(picture, one.page) for one in (group, timeline)] == [["local"], ["local"]]


def test_a_group_that_never_was_is_not_found() -> None:
    response = get(GivenSource(*THREE), "/group", id="nothing")
    assert response.status == HTTPStatus.NOT_FOUND
    assert "Group nothing does not exist" in ReadPage(response.page).shown


def test_a_timeline_is_the_page_that_explain_writes() -> None:
    source = GivenSource()
    source.stories["billing"] = incident()
    response = get(source, "/timeline", id="billing")
    assert response.status == HTTPStatus.OK
    assert "<title>billing: rebalances</title>" in response.page
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*); form-action', response.page)
    assert response.policy.startswith(policy)


def test_a_timeline_has_lag_if_it_is_asked_for() -> None:
    source = GivenSource()
    source.stories["billing"] = incident()
    assert "nobody measured it" in get(source, "/timeline", id="billing", lag="yes").page
    assert "nobody measured it" not in get(source, "/timeline", id="billing").page


def test_a_timeline_begins_when_asked() -> None:
    source = GivenSource()
    source.stories["billing"] = incident()
    last = source.stories["billing"].journal[-1].timestamp
    long, short = (get(source, "/timeline", id="billing", **one).page for one in ({}, {"since": f"{last - 60_000}"}))
    assert "is not a time" in ReadPage(short).shown
    short = get(source, "/timeline", id="billing", since="2025-11-24T17:50:00Z").page
    assert len(short) < len(long)
    assert get(source, "/timeline", id="billing", since="1s").status == HTTPStatus.NOT_FOUND


def test_a_timeline_of_brokers_that_do_not_answer_says_so() -> None:
    response = get(GivenSource(away=True), "/timeline", id="billing")
    assert response.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "no broker answers" in ReadPage(response.page).shown


def test_the_search_finds_groups_and_members_by_every_name() -> None:
    source = GivenSource(row("billing"), row("audit"), members={"billing": [MEMBER]})
    for query in ("Reader-1-ABC", "static-7", "eader-1", "10.0.3"):
        page = page_of(source, "/search", q=query)
        assert group_ids(page) == ["billing"], query
        assert "Members: 1" in page.shown
    assert group_ids(page_of(source, "/search", q="aud")) == ["audit"]
    assert "Nothing was found." in page_of(source, "/search", q="nobody").shown
    assert "Type a part" in page_of(source, "/search", q=" ").shown


def test_the_search_finds_groups_while_the_coordinator_does_not_answer() -> None:
    page = page_of(GivenSource(*THREE, away=True), "/search", q="aud")
    assert group_ids(page) == ["audit"]
    assert "Members were not searched: " in page.shown
    assert "no broker answers" in page.shown


def test_the_search_asks_so_many_groups_and_says_so() -> None:
    source = GivenSource(*(row(f"group-{number:04}") for number in range(MAX_SEARCHED + 1)))
    page = page_of(source, "/search", q="reader")
    assert [len(asked) for asked in source.asked] == [MAX_SEARCHED]
    assert f"Members of {MAX_SEARCHED} of {MAX_SEARCHED + 1} groups were searched." in page.shown


PIECES = (
    "<script>",
    "</script>",
    "</title>",
    "<img src=x onerror=x>",
    "'",
    '"',
    "&lt;",
    "\n",
    "\0",
    "..",
    "/",
    "?",
    "#",
    "\u202e",
)
NAMES = st.text(max_size=12) | st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
PATHS = st.sampled_from(["/", "/group", "/search", "/timeline"])


@given(PATHS, NAMES, NAMES, NAMES)
def test_what_clients_choose_is_text_in_every_page(path: str, name: str, other: str, query: str) -> None:
    member = MemberNow(other, other, other, name, f"{other}: 1")
    source = GivenSource(row(name, state=other), members={name: [member]})
    partition = TopicPartition(other, 0)
    source.partitions = [PartitionNow(partition, Position(1), 2, Holder(partition, other, other, name), other)]
    source.stories[name] = ScriptedGroup(name)
    source.stories[name].start(other, host=name, reason=other)
    response = get(source, path, id=name, q=name or query, filter=name, sort=query)
    page = ReadPage(response.page)
    assert response.status == HTTPStatus.OK
    assert page.tags.count("script") == (2 if path in ("/timeline", "/group") else 1)
    assert "img" not in page.tags
    assert not [one for one, _ in page.attributes if one.startswith("on")]
    assert all(character.isprintable() or character == "\n" for character in page.shown)
    assert all((value or "").isprintable() for _, value in page.attributes)
    if path == "/":
        assert group_ids(page) == [name]


def test_a_page_runs_only_its_own_script_and_loads_nothing() -> None:
    source = GivenSource(*THREE)
    source.stories["billing"] = incident()
    for response in (get(source, "/"), get(source, "/group", id="audit"), get(source, "/group", id="billing")):
        for kind in ("script", "style"):
            (part,) = re.findall(rf"<{kind}>(.*?)</{kind}>", response.page, re.DOTALL)
            assert f"{kind}-src 'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'" in response.policy
        assert not re.findall(r"""\bsrc\s*=|https?:|url\(|@import|\binnerHTML\b|\beval\b""", response.page)
        assert "unsafe" not in response.policy
        assert all(one.startswith("/") for one in ReadPage(response.page).links)


@given(NAMES.filter(bool))
def test_a_link_to_a_group_reaches_it(name: str) -> None:
    source = GivenSource(row(name))
    (address,) = [one for one in page_of(source, "/").links if one.startswith("/group?")]
    assert page_of(source, "/group", **_values(address)).texts("h1")


def test_a_group_whose_id_is_too_long_for_an_address_has_no_link() -> None:
    page = page_of(GivenSource(row("x" * 30_000)), "/")
    assert group_ids(page) == []
    assert "(30,000 characters)" in page.shown
