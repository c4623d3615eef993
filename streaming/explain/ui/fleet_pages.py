"""The pages about all groups: the list, and what a search has found."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from streaming.explain.live.columns import COLUMNS, coordinator_line, matches, ordered
from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.group import GroupNow
from streaming.explain.live.group_types import MemberNow
from streaming.explain.live.readers import LiveSource
from streaming.explain.ui.elements import (
    GROUPS,
    HtmlPage,
    dim,
    document,
    element,
    group_link,
    page_address,
    shortened,
    table,
)

MAX_ROWS = 500
REFRESH_MS = 2_000
DEFAULT_SORT = "rebalances"

KEYS = "Keys: / filters, arrow up and down choose a group, Enter opens it, p pauses."


class Selection(NamedTuple):
    """What a list shows: the groups that match a pattern, sorted by a column, maybe in the unusual direction."""

    pattern: str = ""
    sort: str = DEFAULT_SORT
    is_reversed: bool = False

    @property
    def column(self) -> int:
        """The place of the column; that of the default for a name that no column has."""
        places = {column.key: place for place, column in enumerate(COLUMNS)}
        return places.get(self.sort, places[DEFAULT_SORT])

    @property
    def is_descending(self) -> bool:
        """Whether the largest values come first."""
        return COLUMNS[self.column].is_descending != self.is_reversed

    def address(self, sort: str, *, is_reversed: bool) -> str:
        """The address of the list with the same pattern, in another order."""
        values = {"filter": self.pattern, "sort": sort, "reverse": "yes" if is_reversed else ""}
        return page_address(GROUPS, **{name: value for name, value in values.items() if value})


def groups_page(source: LiveSource, selection: Selection) -> HtmlPage:
    """The list of groups, which its script keeps current."""
    rows = source.rows()
    matching = (row for row in rows if matches(row, selection.pattern))
    found = ordered(matching, COLUMNS[selection.column], is_descending=selection.is_descending)
    line = coordinator_line(source.pulse(), rows, source.is_complete)
    if len(found) > MAX_ROWS:
        line += f" | the first {MAX_ROWS} of {len(found):,}"
    live = element(
        "section",
        {"id": "live", "data-refresh": str(REFRESH_MS)},
        dim(line),
        _table(found[:MAX_ROWS], selection),
    )
    stale = element("p", {"id": "stale", "role": "status", "hidden": ""}, "The server does not answer.")
    return document("Groups", element("h1", {}, "Groups"), _filter(selection), stale, live, dim(KEYS))


def search_page(
    query: str, groups: Sequence[FleetRow], members: Sequence[tuple[str, MemberNow]], remark: str
) -> HtmlPage:
    """What a search has found: groups, and members with their groups. ``remark`` says what was searched."""
    heading = f"Search: {shortened(query)}" if query else "Search"
    parts = [element("h1", {}, heading), dim(remark)]
    if groups:
        parts += [element("h2", {}, f"Groups: {_count(groups)}"), _table(groups[:MAX_ROWS], None)]
    if members:
        heads = ("GROUP", "MEMBER", "INSTANCE", "CLIENT", "HOST")
        rows = (
            (group_link(group_id), *map(shortened, (one.member_id, one.instance_id, one.client_id, one.client_host)))
            for group_id, one in members[:MAX_ROWS]
        )
        parts += [element("h2", {}, f"Members: {_count(members)}"), table(heads, rows)]
    if query and not (groups or members):
        parts.append(element("p", {}, "Nothing was found."))
    return document(heading, *parts, query=query)


def matching_members(groups: Mapping[str, GroupNow], query: str) -> Iterator[tuple[str, MemberNow]]:
    """The members whose ids, client id or host contain the query, in any case, each with its group's id."""
    wanted = query.casefold()
    for group_id, group in groups.items():
        for member in group.members:
            names = (member.member_id, member.instance_id, member.client_id, member.client_host)
            if any(wanted in name.casefold() for name in names):
                yield group_id, member


def _table(rows: Sequence[FleetRow], selection: Selection | None) -> Element:
    """The columns of ``top``; with a selection, their heads sort."""
    numbers = [place for place, column in enumerate(COLUMNS) if column.justify == "right"]
    words = [place for place, column in enumerate(COLUMNS) if column.is_word]
    body = [[group_link(row.group_id), *(shortened(column.text(row)) for column in COLUMNS[1:])] for row in rows]
    if selection is None:
        return table([column.title for column in COLUMNS], body, numbers, words=words)
    chosen = selection.column
    heads = [
        element(
            "a",
            {"href": selection.address(column.key, is_reversed=place == chosen and not selection.is_reversed)},
            column.title + ((" ▼" if selection.is_descending else " ▲") if place == chosen else ""),
        )
        for place, column in enumerate(COLUMNS)
    ]
    return table(heads, body, numbers, {chosen: "descending" if selection.is_descending else "ascending"}, words)


def _filter(selection: Selection) -> Element:
    field = {"id": "filter", "type": "search", "name": "filter", "value": selection.pattern, "spellcheck": "false"}
    hints = {"placeholder": "Part of a group id or a state", "aria-label": "Filter"}
    kept = [element("input", {"type": "hidden", "name": "sort", "value": selection.sort})]
    if selection.is_reversed:
        kept.append(element("input", {"type": "hidden", "name": "reverse", "value": "yes"}))
    pause = {"id": "pause", "type": "button", "aria-pressed": "false", "hidden": ""}
    return element(
        "form",
        {"action": GROUPS},
        element("input", field | hints),
        *kept,
        element("button", {}, "Filter"),
        element("button", pause, "Pause"),
    )


def _count(found: Collection[object]) -> str:
    return f"{len(found):,}" if len(found) <= MAX_ROWS else f"the first {MAX_ROWS} of {len(found):,}"
