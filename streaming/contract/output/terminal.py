"""Prints lines and tables with colours. No text is read as rich's markup or as an emoji's name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.status import Status
from rich.table import Column, Table
from rich.text import Text

from streaming.contract.output.text import printable

Part = str | tuple[str, str]
"""A piece of a line: a text, or a text with its style."""

Cell = str | list[str]
"""A cell of a table: a text, or lines."""


@dataclass(frozen=True)
class FoldedColumn:
    """A column of a table whose cells are broken between any two characters, if there is no room for a word."""

    title: str


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

    def table(self, columns: Iterable[str | FoldedColumn], rows: Iterable[Sequence[Cell]]) -> None:
        """Print a table; without a terminal, as plain columns, of which none is cut and none is left out."""
        if not self._console.is_terminal:
            self._plain_table(list(columns), list(rows))
            return
        table = Table(*(_column(each) for each in columns))
        for row in rows:
            table.add_row(*map(_cell, row))
        self._console.print(table)

    def _plain_table(self, columns: Sequence[str | FoldedColumn], rows: Sequence[Sequence[Cell]]) -> None:
        titles = [each.title if isinstance(each, FoldedColumn) else each for each in columns]
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


def _plain_cell(cell: Cell) -> str:
    """A cell in one line, so that each row is one."""
    return printable(cell if isinstance(cell, str) else "; ".join(cell))


def _column(column: str | FoldedColumn) -> Column:
    if isinstance(column, FoldedColumn):
        return Column(_text(column.title), overflow="fold")
    return Column(_text(column))
