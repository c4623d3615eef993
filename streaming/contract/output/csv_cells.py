"""Cells of CSV that no spreadsheet takes for a formula, as OWASP's page on CSV injection says.

A text that begins as a formula does gets an apostrophe in front. So does one that has only apostrophes before such a
beginning: otherwise :func:`original` could not tell whose the first apostrophe is.
"""

import re
from collections.abc import Iterable

_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""What OWASP lists, with the full-width forms of the four characters."""

_DEFUSED = re.compile(f"'{_FORMULA.pattern}")

_QUOTED = re.compile(r'[",\r\n]')


def csv_line(cells: Iterable[str | int]) -> str:
    """A line of CSV. Numbers stay as they are: a negative one is no formula."""
    return ",".join(str(cell) if isinstance(cell, int) else _text_cell(cell) for cell in cells) + "\n"


def original(cell: str) -> str:
    """The text of a cell that was written by :func:`csv_line`, or by a program that does not defuse formulas."""
    return cell[1:] if _DEFUSED.match(cell) else cell


def _text_cell(text: str) -> str:
    cell = f"'{text}" if _FORMULA.match(text) else text
    # Python's writer does not quote a carriage return, which readers take for the end of the line.
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell
