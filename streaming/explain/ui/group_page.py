"""The page of one group: as the coordinator describes it, and what its journal says."""

from collections.abc import Iterable, Iterator, Sequence
from xml.etree.ElementTree import Element

from streaming.contract.output.text import counted
from streaming.explain.live.columns import COLUMNS
from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.group_types import MemberNow
from streaming.explain.live.partitions import PARTITION_COLUMNS
from streaming.explain.page.of_group import picture_of_story
from streaming.explain.story.model import Rebalance, Story
from streaming.explain.story.words import cause_in_short, headline, now_lines, rebalance_lines
from streaming.explain.ui.elements import (
    TIMELINE,
    HtmlPage,
    dim,
    document,
    element,
    lines,
    link,
    moment,
    page_address,
    place_of_picture,
    shortened,
    table,
)
from streaming.explain.ui.model import Described, Told

SHOWN_REBALANCES = 20
SHOWN_LINES = 2_000
"""The most members and the most partitions on a page."""

TIMELINES = {
    "the last 2 hours, with lag": {"since": "2h", "lag": "yes"},
    "the last 24 hours, with lag": {"since": "24h", "lag": "yes"},
    "everything in the journal": {},
}
"""The links to timelines, and what is asked for. With lag, the brokers are asked some thirty times."""


def group_page(group_id: str, row: FleetRow | None, described: Described | str, told: Told | str, now: int) -> HtmlPage:
    """The page of a group.

    row: what the list says of it, None if the directory lacks it. described, told: what was read, or why it was not.
    now: ms since the epoch.
    """
    parts = [element("h1", {}, shortened(group_id) or "(the empty id)"), dim("As of ", moment(now), ".")]
    if row is not None:
        figures = ((column.title.capitalize(), column.text(row)) for column in COLUMNS[1:])
        parts.append(_figures(figures))
    parts += _told(group_id, told)
    parts += _described(described)
    picture = None if isinstance(told, str) else picture_of_story(told.story, told.lanes)
    return document(f"{shortened(group_id)}: group", *parts, picture=picture)


def _told(group_id: str, told: Told | str) -> Iterator[Element]:
    yield element("h2", {}, "Timeline")
    if isinstance(told, str):
        yield element("p", {}, told)
        return
    story = told.story
    yield _figures(_summary(story))
    yield place_of_picture()
    yield element("noscript", {}, lines(now_lines(story)))
    yield element("p", {}, "Alone on a page: ", *_timelines(group_id), ".")
    last = story.rebalances[-SHOWN_REBALANCES:]
    if last:
        yield element("h2", {}, f"Last rebalances: {len(last)} of {len(story.rebalances):,}")
    yield from map(_rebalance, reversed(last))


def _rebalance(rebalance: Rebalance) -> Element:
    """When, why and how long in a line, and more when it is opened."""
    _, _, what = headline(rebalance).replace(" -> ", " → ").partition("  ")
    _, *more = rebalance_lines(rebalance)
    took = "goes on" if rebalance.ended is None else f"{(rebalance.ended - rebalance.began) / 1000:.1f} s"
    parts = (("when", moment(rebalance.began)), ("what", what), ("took", took), ("why", cause_in_short(rebalance)))
    summary = (element("span", {"class": name}, content) for name, content in parts)
    return element("details", {"class": "rebalance"}, element("summary", {}, *summary), lines(more))


def _described(described: Described | str) -> Iterator[Element]:
    yield element("h2", {}, "Members")
    if isinstance(described, str):
        yield element("p", {}, f"The coordinator does not describe the group: {described}")
        return
    group, partitions = described
    if group.error:
        yield element("p", {}, f"The coordinator answers {group.error}.")
    else:
        yield dim(f"{group.state} ({group.protocol}), {counted(len(group.members), 'member')}")
    if group.members:
        yield _members(group.members[:SHOWN_LINES])
        yield from _rest(len(group.members))
    yield element("h2", {}, "Partitions")
    if not partitions:
        yield element("p", {}, "No committed offsets, and no member has a partition.")
    else:
        columns = (*PARTITION_COLUMNS, "NOTE")
        yield table(columns, ([*each.cells(), each.note] for each in partitions[:SHOWN_LINES]), range(1, 5))
        yield from _rest(len(partitions))


def _members(members: Sequence[MemberNow]) -> Element:
    """A row for each member; the epochs only of members that have one."""
    heads = ["MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNMENT"]
    if any(member.standing for member in members):
        heads.append("EPOCH")
    rows = []
    for *names, assignment, standing in members:
        row = [*(shortened(name) or "-" for name in names), assignment, standing or "-"]
        rows.append(row[: len(heads)])
    return table(heads, rows)


def _rest(count: int) -> Iterator[Element]:
    if count > SHOWN_LINES:
        yield dim(f"And {count - SHOWN_LINES:,} more.")


def _summary(story: Story) -> Iterator[tuple[str, Element | str]]:
    summary = story.summary
    yield "Since", moment(story.first)
    if not story.is_complete:
        yield "Members at that time", "not known"
    yield "Rebalances", f"{summary.rebalances:,}"
    yield "Rebalances an hour", f"{summary.rebalances_an_hour:.1f}"
    yield "Not stable", f"{summary.not_stable_share:.1%}"
    yield "Flapping", f"{summary.flapping:.0%}"
    if summary.busiest is not None:
        yield "Most caused by", f"{shortened(summary.busiest)} ({summary.busiest_count:,})"


def _timelines(group_id: str) -> Iterator[Element | str]:
    for place, (text, values) in enumerate(TIMELINES.items()):
        if place:
            yield ", "
        yield link(page_address(TIMELINE, id=group_id, **values), text)


def _figures(figures: Iterable[tuple[str, Element | str]]) -> Element:
    def shown(value: Element | str) -> Element | str:
        return value if isinstance(value, Element) else shortened(value) or "-"

    pairs = (element("div", {}, element("dt", {}, name), element("dd", {}, shown(value))) for name, value in figures)
    return element("dl", {}, *pairs)
