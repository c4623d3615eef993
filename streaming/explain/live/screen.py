"""The terminal's view of a fleet: a table of all groups that sorts and filters, and a page for one group."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Header, Input, Static

from streaming.contract.output.text import printable
from streaming.explain.live.columns import COLUMNS, coordinator_line, matches
from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.readers import LiveSource

REFRESH_SECONDS = 1.0

MAX_ROWS = 500
"""A table of more rows would take longer to make than the pause before the next one, and nobody reads it."""


class GroupPage(Screen[None]):
    """What is known of one group, until Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "app.pop_screen", "Back"), ("q", "app.pop_screen", "Back")]

    def __init__(self, group_id: str, describe: Callable[[str], str]) -> None:
        super().__init__()
        self._group_id = group_id
        self._describe = describe

    def compose(self) -> ComposeResult:
        """The group's name, its description, and the keys."""
        yield Header()
        yield Static("asking the coordinator ...", id="description", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Ask on a thread, so that the screen answers to keys meanwhile."""
        self.title = printable(self._group_id)
        self.run_worker(self._show, thread=True)

    def _show(self) -> None:
        text = "\n".join(map(printable, self._describe(self._group_id).split("\n")))
        self.app.call_from_thread(self.query_one("#description", Static).update, text)


class FleetScreen(App[None]):
    """A table of all groups, updated every second.

    source: where the rows come from. describe: returns the text of one group's page; called on a thread.
    """

    TITLE = "group-coordinator"
    CSS = "#filter { dock: top; } #coordinator { height: 1; } DataTable { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "Quit"),
        ("slash", "filter", "Filter"),
        ("s", "sort_next", "Sort by the next column"),
        ("r", "reverse", "Reverse"),
        ("escape", "table", "To the table"),
    ]

    def __init__(self, source: LiveSource, describe: Callable[[str], str], sort: str = "rebalances") -> None:
        super().__init__()
        self._source = source
        self._describe = describe
        self._sorted_by = next(number for number, column in enumerate(COLUMNS) if column.key == sort)
        self._is_descending = COLUMNS[self._sorted_by].is_descending
        self._pattern = ""

    def compose(self) -> ComposeResult:
        """The coordinator's line, the table, the filter, and the keys."""
        yield Header()
        yield Static("", id="coordinator", markup=False)
        yield Input(placeholder="part of a group id or a state", id="filter")
        yield DataTable[Text](cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        """Show what is known, now and every second."""
        self._table.focus()
        self.refresh_rows()
        self.set_interval(REFRESH_SECONDS, self.refresh_if_shown)

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    def action_filter(self) -> None:
        self.query_one(Input).focus()

    def action_table(self) -> None:
        self._table.focus()

    def action_sort_next(self) -> None:
        self._sort_by((self._sorted_by + 1) % len(COLUMNS))

    def action_reverse(self) -> None:
        self._is_descending = not self._is_descending
        self.refresh_rows()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the groups that match."""
        self._pattern = event.value
        self.refresh_rows()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Go on in the table."""
        self._table.focus()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the column that was clicked, or reverse it."""
        if event.column_index == self._sorted_by:
            self.action_reverse()
        else:
            self._sort_by(event.column_index)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show the page of a group."""
        self.push_screen(GroupPage(str(event.row_key.value), self._describe))

    def _sort_by(self, number: int) -> None:
        self._sorted_by, self._is_descending = number, COLUMNS[number].is_descending
        self.refresh_rows()

    def refresh_if_shown(self) -> None:
        """Show the rows as of now, unless the program is about to end: its widgets go before its timers."""
        if self.screen_stack and len(self.screen_stack[0].query("DataTable, #coordinator")) == 2:
            self.refresh_rows()

    def refresh_rows(self) -> None:
        """Show the rows as of now; the cursor stays at its group."""
        # A page may be on top of the table.
        table = self.screen_stack[0].query_one(DataTable)
        fleet = self._source.rows()
        matching = sorted((row for row in fleet if matches(row, self._pattern)), key=lambda row: row.group_id)
        matching.sort(key=COLUMNS[self._sorted_by].value, reverse=self._is_descending)
        rows = matching[:MAX_ROWS]
        selected = _selected(table)
        table.clear(columns=True)
        for number, column in enumerate(COLUMNS):
            arrow = (" ▼" if self._is_descending else " ▲") if number == self._sorted_by else ""
            table.add_column(column.title + arrow, key=column.key)
        for row in rows:
            cells = (Text(printable(column.text(row)), justify=column.justify) for column in COLUMNS)
            table.add_row(*cells, key=row.group_id)
        _select(table, rows, selected)
        line = coordinator_line(self._source.pulse(), fleet, self._source.is_complete)
        if len(matching) > MAX_ROWS:
            line += f" | the first {MAX_ROWS} of {len(matching):,}"
        self.screen_stack[0].query_one("#coordinator", Static).update(printable(line))


def _selected(table: DataTable[Text]) -> str | None:
    if not table.row_count:
        return None
    return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value


def _select(table: DataTable[Text], rows: Sequence[FleetRow], group_id: str | None) -> None:
    for number, row in enumerate(rows):
        if row.group_id == group_id:
            table.move_cursor(row=number)
            return
