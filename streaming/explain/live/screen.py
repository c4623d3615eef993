"""The terminal's view of a fleet: a table of all groups that sorts and filters, and a page for one group."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen
from textual.widgets import DataTable, Footer, Header, Input, Static

from streaming.contract.output.columns import Column as TableColumn
from streaming.contract.output.columns import fitted
from streaming.contract.output.terminal import width_of
from streaming.contract.output.text import printable
from streaming.embedded.interruption import INTERRUPTED
from streaming.explain.live.columns import COLUMNS, Column, coordinator_line, matches, ordered
from streaming.explain.live.readers import LiveSource

REFRESH_SECONDS = 2.0
"""To compute the rows of thousands of groups takes a part of a second."""

KEYS = (
    ("Up, Down", "choose a group"),
    ("Enter", "show the group: its members, and each partition with its lag"),
    ("s", "sort by the next column"),
    ("r", "reverse the order"),
    ("/", "filter by a part of a group id or a state; Enter returns to the table"),
    ("Esc", "back to the table"),
    ("?", "this help"),
    ("q", "quit"),
    ("Ctrl-C", f"quit with exit code {INTERRUPTED}"),
)

AROUND_A_COLUMN, SCROLLBAR = 2, 2
"""What the table adds to the width of a column, and to its own."""

MAX_ROWS = 500
"""A table of more rows would take longer to make than the pause before the next one, and nobody reads it."""


class KeysPage(ModalScreen[None]):
    """The keys, until one of those that close it."""

    CSS = """
    KeysPage { align: center middle; }
    #keys { width: auto; height: auto; padding: 1 2; border: round $primary; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,question_mark,enter", "app.pop_screen", "Back")]

    def compose(self) -> ComposeResult:
        """A line for each key."""
        width = max(len(key) for key, _ in KEYS)
        lines = "\n".join(f"{key:{width}}  {what}" for key, what in KEYS)
        yield Static(f"{lines}\n\nThe heads of the columns sort, too.", id="keys", markup=False)


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
    """A table of all groups, which looks for changes every two seconds and draws only these.

    source: where the rows come from. describe: returns the text of one group's page; called on a thread.
    """

    TITLE = "group-coordinator"
    CSS = "#coordinator { height: 1; } DataTable { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "Quit"),
        ("slash", "filter", "Filter"),
        ("s", "sort_next", "Sort by the next column"),
        ("r", "reverse", "Reverse"),
        ("escape", "table", "To the table"),
        ("question_mark", "keys", "Keys"),
        Binding("ctrl+c", "interrupt", "Quit", show=False, priority=True),
    ]

    def __init__(self, source: LiveSource, describe: Callable[[str], str], sort: str = "rebalances") -> None:
        super().__init__()
        self._source = source
        self._describe = describe
        self._sorted_by = next(number for number, column in enumerate(COLUMNS) if column.key == sort)
        self._is_descending = COLUMNS[self._sorted_by].is_descending
        self._pattern = ""
        self._shown: dict[str, list[str]] = {}
        """The texts of the table's cells by group, in their order."""
        self._heads: list[str] = []
        self._line = ""

    def compose(self) -> ComposeResult:
        """The filter, the coordinator's line, the table, and the keys."""
        yield Header()
        yield Input(placeholder="part of a group id or a state", id="filter")
        yield Static("", id="coordinator", markup=False)
        yield DataTable[Text](cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        """Show what is known, now and at each interval."""
        for number in (signal.SIGINT, signal.SIGTERM):
            # The signal's default would leave the terminal as the screen has set it up.
            asyncio.get_running_loop().add_signal_handler(number, self.action_interrupt)
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

    def action_keys(self) -> None:
        self.push_screen(KeysPage())

    def action_interrupt(self) -> None:
        self.exit(return_code=INTERRUPTED)

    def action_sort_next(self) -> None:
        self._sort_by((self._sorted_by + 1) % len(COLUMNS))

    def action_reverse(self) -> None:
        self._is_descending = not self._is_descending
        self.refresh_rows()

    def on_resize(self) -> None:
        """Show the columns that have room, once the new size is known."""
        self.call_later(self.refresh_if_shown)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the groups that match."""
        self._pattern = event.value
        self.refresh_rows()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Go on in the table."""
        self._table.focus()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the column that was clicked, or reverse it."""
        clicked = next(place for place, column in enumerate(COLUMNS) if column.key == event.column_key.value)
        if clicked == self._sorted_by:
            self.action_reverse()
        else:
            self._sort_by(clicked)

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
        fleet = self._source.rows()
        found = (row for row in fleet if matches(row, self._pattern))
        matching = ordered(found, COLUMNS[self._sorted_by], is_descending=self._is_descending)
        rows = {row.group_id: [printable(column.text(row)) for column in COLUMNS] for row in matching[:MAX_ROWS]}
        self._draw_table(rows)
        line = coordinator_line(self._source.pulse(), fleet, self._source.is_complete)
        if len(matching) > MAX_ROWS:
            line += f" | the first {MAX_ROWS} of {len(matching):,}"
        if line != self._line:
            self._line = line
            self.screen_stack[0].query_one("#coordinator", Static).update(printable(line))

    def _draw_table(self, rows: dict[str, list[str]]) -> None:
        """Draw the cells that have changed; the whole table if other rows or another order are to be shown."""
        # A page may be on top of the table.
        table = self.screen_stack[0].query_one(DataTable)
        arrow = " ▼" if self._is_descending else " ▲"
        heads = [column.title + (arrow if place == self._sorted_by else "") for place, column in enumerate(COLUMNS)]
        places = self._places_with_room(heads, rows)
        heads = [head if place in places else "" for place, head in enumerate(heads)]
        if heads != self._heads or list(rows) != list(self._shown):
            selected = _selected(table)
            table.clear(columns=True)
            for place in places:
                table.add_column(heads[place], key=COLUMNS[place].key)
            for group_id, texts in rows.items():
                table.add_row(*(_cell(texts[place], COLUMNS[place]) for place in places), key=group_id)
            _select(table, list(rows), selected)
            left_out = [column.title for place, column in enumerate(COLUMNS) if place not in places]
            self.sub_title = f"no room for {', '.join(left_out)}" if left_out else ""
        else:
            for group_id, texts in rows.items():
                before = self._shown[group_id]
                for place in places:
                    if texts[place] != before[place]:
                        cell = _cell(texts[place], COLUMNS[place])
                        table.update_cell(group_id, COLUMNS[place].key, cell, update_width=True)
        self._shown, self._heads = rows, heads

    def _places_with_room(self, heads: Sequence[str], rows: dict[str, list[str]]) -> list[int]:
        """The columns that fit; the one that sorts the rows is the most important of those that may be left out."""
        cells = list(zip(heads, *rows.values(), strict=True))
        widths = [max(map(width_of, column)) for column in cells]
        columns = [TableColumn(head, column.rank) for head, column in zip(heads, COLUMNS, strict=True)]
        columns[self._sorted_by] = TableColumn(heads[self._sorted_by], min(COLUMNS[self._sorted_by].rank, 1))
        has_text = [True] * len(columns)
        return list(fitted(columns, widths, has_text, self.size.width - SCROLLBAR, AROUND_A_COLUMN))


def _cell(text: str, column: Column) -> Text:
    return Text(text, justify=column.justify)


def _selected(table: DataTable[Text]) -> str | None:
    if not table.row_count:
        return None
    return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value


def _select(table: DataTable[Text], group_ids: Sequence[str], group_id: str | None) -> None:
    if group_id in group_ids:
        table.move_cursor(row=group_ids.index(group_id))
