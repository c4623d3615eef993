"""The page of one group: as the coordinator describes it, and what its journal says."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from streaming.explain.live.columns import COLUMNS
from streaming.explain.live.fleet import FleetRow
from streaming.explain.story.model import Story
from streaming.explain.story.words import clock, now_lines, rebalance_lines
from streaming.explain.ui.elements import TIMELINE, dim, document, element, lines, link, page_address, shortened, table
from streaming.explain.ui.model import Described, Told

SHOWN_REBALANCES = 20
SHOWN_LINES = 2_000
"""The most members and the most offsets on a page."""

TIMELINES = {
    "the last 2 hours, with lag": {"since": "2h", "lag": "yes"},
    "the last 24 hours, with lag": {"since": "24h", "lag": "yes"},
    "everything in the journal": {},
}
"""The links to timelines, and what is asked for. With lag, the brokers are asked some thirty times."""


def group_page(group_id: str, row: FleetRow | None, described: Described | str, told: Told | str, now: int) -> str:
    """The page of a group.

    row: what the list says of it, None if the directory lacks it. described, told: what was read, or why it was not.
    now: ms since the epoch.
    """
    parts = [element("h1", {}, shortened(group_id) or "(the empty id)"), dim(f"As of {clock(now)}.")]
    if row is not None:
        figures = [(column.title.capitalize(), column.text(row)) for column in COLUMNS[1:]]
        parts.append(_figures(figures))
    parts += _told(group_id, told)
    parts += _described(described)
    return document(f"{shortened(group_id)}: group", *parts)


def _told(group_id: str, told: Told | str) -> Iterator[Element]:
    yield element("h2", {}, "Timeline")
    if isinstance(told, str):
        yield element("p", {}, told)
        return
    yield element("ul", {}, *(element("li", {}, _timeline(group_id, text)) for text in TIMELINES))
    story = told.story
    yield element("h2", {}, "In the journal")
    yield _figures(_summary(story))
    yield lines(now_lines(story))
    last = story.rebalances[-SHOWN_REBALANCES:]
    if last:
        yield element("h2", {}, f"Last rebalances: {len(last)} of {len(story.rebalances):,}")
    for rebalance in reversed(last):
        first, *more = rebalance_lines(rebalance)
        yield element("details", {}, element("summary", {}, first), lines(more))


def _described(described: Described | str) -> Iterator[Element]:
    yield element("h2", {}, "Members")
    if isinstance(described, str):
        yield element("p", {}, f"The coordinator does not describe the group: {described}")
        return
    group, offsets, ends = described
    if group.error:
        yield element("p", {}, f"The coordinator answers {group.error}.")
    else:
        yield dim(f"{group.state} ({group.protocol}), {len(group.members):,} member(s)")
    if group.members:
        heads = ("MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNMENT")
        yield table(
            heads, ([*(shortened(one) or "-" for one in names), held] for *names, held in group.members[:SHOWN_LINES])
        )
        yield from _rest(len(group.members))
    yield element("h2", {}, "Committed offsets")
    if isinstance(offsets, str):
        yield element("p", {}, f"The coordinator answers {offsets}.")
    elif not offsets:
        yield element("p", {}, "None.")
    else:
        rows = []
        for each in offsets[:SHOWN_LINES]:
            end = ends.get((each.topic, each.partition))
            figures = ["not known"] * 2 if end is None else [f"{end:,}", f"{max(0, end - each.offset):,}"]
            rows.append([each.topic, str(each.partition), f"{each.offset:,}", *figures])
        yield table(("TOPIC", "PARTITION", "COMMITTED", "END", "LAG"), rows, range(1, 5))
        yield from _rest(len(offsets))


def _rest(count: int) -> Iterator[Element]:
    if count > SHOWN_LINES:
        yield dim(f"And {count - SHOWN_LINES:,} more.")


def _summary(story: Story) -> Iterator[tuple[str, str]]:
    summary = story.summary
    yield "From", clock(story.first) + ("" if story.is_complete else " (what was before is not known)")
    yield "Rebalances", f"{summary.rebalances:,}"
    yield "Rebalances an hour", f"{summary.rebalances_an_hour:.1f}"
    yield "Not stable", f"{summary.not_stable_share:.1%}"
    yield "Flapping", f"{summary.flapping:.0%}"
    if summary.busiest is not None:
        yield "Most caused by", f"{shortened(summary.busiest)} ({summary.busiest_count:,})"


def _timeline(group_id: str, text: str) -> Element | str:
    return link(page_address(TIMELINE, id=group_id, **TIMELINES[text]), text)


def _figures(figures: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> Element:
    pairs = (
        element("div", {}, element("dt", {}, name), element("dd", {}, shortened(value) or "-"))
        for name, value in figures
    )
    return element("dl", {}, *pairs)
