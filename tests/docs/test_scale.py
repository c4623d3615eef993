"""The table of docs/scale.md is what its arithmetic gives, and its figures are those that were measured."""

import math
import re
from collections.abc import Iterator

from tests.docs.markdown import ROOT

SCALE = (ROOT / "docs" / "scale.md").read_text()

GROUPS, RATES = (1_000, 100_000, 1_000_000), (10, 1_000, 10_000, 100_000)

BYTES_OF_A_GROUP = 2_000
GIB = 2**30
FILES_A_MONTH = 1_800 * 730
"""A batch every 2 s."""

DOLLARS_FOR_A_WRITE = 0.005 / 1_000


def executors(groups: int, rate: int) -> int:
    return max(1, math.ceil(rate / 5_000), math.ceil(groups / 250_000))


def heap_gib(groups: int, count: int) -> float:
    return math.ceil((0.5 + BYTES_OF_A_GROUP * groups / count / GIB) * 2) / 2


def rows() -> Iterator[str]:
    for groups in GROUPS:
        for rate in RATES:
            count = executors(groups, rate)
            dollars = 35 + round(FILES_A_MONTH * DOLLARS_FOR_A_WRITE, 2) * (count - 1)
            yield f"| {groups:,} | {rate:,} | {count} | {heap_gib(groups, count):g} | {dollars:,.0f} |"


def test_each_row_follows_from_the_arithmetic() -> None:
    assert "\n".join(rows()) in SCALE


def microseconds_of_a_commit(pattern: str) -> float:
    """What a run used of an executor's core for a commit; the groups of the pattern are its requests/s and cores."""
    found = re.search(pattern, SCALE, re.MULTILINE)
    assert found is not None
    microseconds = float(found[2]) / int(found[1].replace(",", "")) * 1e6
    assert f"| {microseconds:.0f} us |" in SCALE
    return microseconds


def test_the_pace_of_an_executor_is_60_percent_of_what_was_measured_on_the_slower_machine() -> None:
    microseconds_of_a_commit(r"^\| 1 \| .* \| ([\d,]+) \| 100% \| .* \| (0\.\d+) \|$")
    slower = microseconds_of_a_commit(r"slower machine.* ([\d,]+) requests/s with (0\.\d+) of a core")
    assert 0.55 < 5_000 * slower / 1e6 < 0.6


def test_figures_of_other_pages_are_there() -> None:
    for figure, page in re.findall(r"\| ([\d.,]+(?: \w+|/s)?) \| \[[^]]+\]\((performance\.md)#", SCALE):
        assert re.search(rf"\b{re.escape(figure)}", (ROOT / "docs" / page).read_text()), figure
