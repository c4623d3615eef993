"""Prints lines and tables with colours. No text is read as rich's markup or as an emoji's name."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from streaming.contract.output.columns import Column, fitted
from streaming.contract.output.text import printable

Part = str | tuple[str, str]
"""A piece of a line: a text, or a text with its style."""

Cell = str | list[str]
"""A cell of a table: a text, or lines."""

_NOTHING = ("", "-")
"""The cells without anything to show."""

_AROUND_A_COLUMN, _AROUND_A_TABLE = 3, 1
"""A space on both sides of a cell and a border behind it, and the first border."""


class Terminal:
    """A terminal, or what standard output or standard error is instead. Its lines are not broken."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @property
    def is_interactive(self) -> bool:
        """Whether it is a terminal, whatever colours it is told to have."""
        return self._console.file.isatty()

    def line(self, *parts: Part, style: str | None = None) -> None:
        """Print the parts as a line."""
        text = Text.assemble(*(_text(part) for part in parts))
        self._console.print(text, style=style, soft_wrap=True)

    def table(self, columns: Iterable[str | Column], rows: Iterable[Sequence[Cell]]) -> None:
        """Print a table. Nothing is cut: what has no room in a line of a terminal goes on in the next one.

        A terminal gets the columns that it has room for, and a line that names the others. Without a terminal, the
        table is plain columns, and all of them.
        """
        every = [Column(each) if isinstance(each, str) else each for each in columns]
        if self.is_interactive:
            self._fitted_table(every, list(rows))
        else:
            self._plain_table([each.title for each in every], list(rows))

    def _fitted_table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        titles, cells = [_text(each.title) for each in columns], [[_cell(cell) for cell in row] for row in rows]
        widths = [max(width_of(cell.plain) for cell in column) for column in zip(titles, *cells, strict=True)]
        has_text = [any(row[place].plain not in _NOTHING for row in cells) for place in range(len(columns))]
        shown = fitted(columns, widths, has_text, self._console.width - _AROUND_A_TABLE, _AROUND_A_COLUMN)
        table = Table()
        for place, width in shown.items():
            table.add_column(titles[place], width=width, overflow="fold")
        for row in cells:
            table.add_row(*(row[place] for place in shown))
        self._console.print(table)
        if left_out := [titles[place].plain for place in range(len(columns)) if has_text[place] and place not in shown]:
            room = f"not shown in {self._console.width} columns: {', '.join(left_out)}"
            self.line(f"{room}; a wider terminal or --json has them", style="dim")

    def _plain_table(self, titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        lines = [[_plain_cell(title).replace(" ", "-") for title in titles]]
        lines += [[_plain_cell(cell) or "-" for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            self.line("  ".join(cells).rstrip())

    def waiting(self, what: str) -> Status:
        """Show what the program waits for while the block runs, on a terminal."""
        return self._console.status(_text(what))


def standard_output() -> Terminal:
    """The terminal of standard output."""
    return Terminal(Console())


def standard_error() -> Terminal:
    """The terminal of standard error."""
    return Terminal(Console(stderr=True))


def _text(part: Part) -> Text:
    text, style = part if isinstance(part, tuple) else (part, "")
    return Text(printable(text), style)


def _cell(cell: Cell) -> Text:
    return Text("\n".join(map(printable, [cell] if isinstance(cell, str) else cell)))


def width_of(text: str) -> int:
    """How many columns of a terminal the longest line of a text takes: a Chinese character takes two."""
    return max(map(cell_len, text.split("\n")))


def _plain_cell(cell: Cell) -> str:
    """A cell in one line, so that each row is one."""
    return printable(cell if isinstance(cell, str) else "; ".join(cell))
