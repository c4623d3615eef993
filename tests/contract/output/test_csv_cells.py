"""Cells of CSV that begin as a formula does, or that have the characters of CSV itself."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.contract.output.csv_cells import csv_line, original
from tests.contract.output.hostile_texts import hostile_texts


def cells_of(text: str) -> list[list[str]]:
    """The cells as a spreadsheet reads them."""
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_what_owasp_lists_is_no_formula(begin: str) -> None:
    ((cell,),) = cells_of(csv_line([f"{begin}cmd|' /C calc'!A0"]))
    assert cell == f"'{begin}cmd|' /C calc'!A0"
    assert original(cell) == f"{begin}cmd|' /C calc'!A0"


def test_ordinary_cells_and_numbers_stay_as_they_are() -> None:
    assert csv_line(["orders", 0, -1, "", "a 'b'", "'c"]) == "orders,0,-1,,a 'b','c\n"


def test_a_cell_of_another_program_that_begins_as_a_formula_is_read_as_it_is() -> None:
    assert original("-orders") == "-orders"


@given(st.lists(st.lists(hostile_texts | st.just("") | st.text(), min_size=2, max_size=3), max_size=3))
def test_every_text_is_read_back_and_none_begins_as_a_formula(lines: list[list[str]]) -> None:
    read = cells_of("".join(map(csv_line, lines)))
    assert [list(map(original, line)) for line in read] == lines
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for line in read for cell in line)
