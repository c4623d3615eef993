"""What console sessions print in every run: all but times, durations, ids, places in the journal, hosts and users."""

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest

VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]?\d\d:\d\d:\d\d\.\d+(Z|\+00:00)"), "TIME"),
    (re.compile(r"\d+\.\d(?= s\b| an hour|%)|\d+(?= ms\b)"), "NUMBER"),
    (re.compile(r"flapping \d+%"), "flapping NUMBER"),
    (re.compile(r"entr(y \d+|ies \d+ to \d+) of the journal"), "ENTRIES"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-([0-9a-f]{12}|[0-9a-f]+…)"), "ID"),
    (re.compile(r"group-coordinator-cli ?at ?(?!/)[^\s:]+?(?=:|as ?User:|$)"), "group-coordinator-cli at HOST"),
    (re.compile(r"as ?User:\S+?(?= ?\(claimed\))"), "as User:USER"),
)
"""What differs from run to run, and what takes its place."""

GATEWAY = "gateway: "

_CELLS, _BORDERS, _LAST_BORDER = "┃│", "┏┡├└", "└"


def what_stays(printed: Iterable[str]) -> list[str]:
    """The lines of an output that are the same in every run; a table has a line for each of its columns.

    Where the cells of a table are wrapped, and how wide a column is, depends on the length of a host's name. A gateway
    and a job that stop together print their lines in any order: those of the gateway come last.
    """
    lines = [_without_varying(line) for line in _with_columns(printed) if line]
    return sorted(lines, key=lambda line: line.startswith(GATEWAY))


def _without_varying(line: str) -> str:
    for pattern, constant in VARYING:
        line = pattern.sub(constant, line)
    return line


def _with_columns(printed: Iterable[str]) -> Iterator[str]:
    columns: list[str] = []
    for line in printed:
        if line[:1] and line[0] in _CELLS:
            cells = ["".join(cell.split()) for cell in re.split(f"[{_CELLS}]", line)[1:-1]]
            columns = [column + cell for column, cell in zip_longest(columns, cells, fillvalue="")]
        elif not line or line[0] not in _BORDERS:
            yield line
        elif line[0] == _LAST_BORDER:
            yield from columns
            columns = []
