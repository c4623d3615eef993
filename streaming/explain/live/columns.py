"""The columns of the table of groups, and the line above it."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from streaming.contract.output.text import counted
from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.readers import Pulse

SILENT_SECONDS = 2.0
"""Announcements are half a second apart."""


class Column(NamedTuple):
    """A column: its name in options, its title, what it sorts by, and its text; numbers are aligned to the right.

    is_word: each text is a single word, such as a state. rank: what a narrow terminal leaves out, as in
    :class:`streaming.contract.output.columns.Column`; 1 is that of the column by which the rows are sorted.
    """

    key: str
    title: str
    value: Callable[[FleetRow], Any]
    text: Callable[[FleetRow], str]
    justify: Literal["left", "right"] = "left"
    is_word: bool = False
    rank: int = 0

    @property
    def is_descending(self) -> bool:
        """Whether the largest values come first at the beginning."""
        return self.justify == "right"


COLUMNS = (
    Column("group", "GROUP", lambda row: row.group_id, lambda row: row.group_id),
    Column("state", "STATE", lambda row: row.state, lambda row: row.state, is_word=True),
    Column("type", "TYPE", lambda row: row.group_type, lambda row: row.group_type, is_word=True, rank=8),
    Column("members", "MEMBERS", lambda row: row.members, lambda row: str(row.members), "right", rank=2),
    Column(
        "generation", "GENERATION/EPOCH", lambda row: row.generation, lambda row: str(row.generation), "right", rank=7
    ),
    Column(
        "lag",
        "LAG",
        lambda row: -1 if row.lag is None else row.lag,
        lambda row: "-" if row.lag is None else f"{row.lag:,}",
        "right",
    ),
    Column(
        "rebalances",
        "REBALANCES/MIN",
        lambda row: row.rebalances,
        lambda row: f"{row.rebalances_a_minute:.1f}" if row.rebalances else "-",
        "right",
        rank=4,
    ),
    Column(
        "rebalancing",
        "REBALANCING",
        lambda row: row.rebalancing_share,
        lambda row: f"{row.rebalancing_share:.0%}" if row.rebalancing_share else "-",
        "right",
        rank=6,
    ),
    Column(
        "since",
        "IN STATE FOR",
        lambda row: row.since or 0,
        lambda row: "-" if row.since is None else _duration(time.time() - row.since / 1000),
        "right",
        rank=5,
    ),
    Column("reason", "LAST REBALANCE", lambda row: row.reason or "", lambda row: row.reason or "-", rank=3),
)


def column_of(key: str) -> Column:
    """The column with a name that an option has."""
    return next(column for column in COLUMNS if column.key == key)


def ordered(rows: Iterable[FleetRow], column: Column, *, is_descending: bool) -> list[FleetRow]:
    """The rows sorted by a column; groups that are alike in it by their ids."""
    by_id = sorted(rows, key=lambda row: row.group_id)
    return sorted(by_id, key=column.value, reverse=is_descending)


def matches(row: FleetRow, pattern: str) -> bool:
    """Whether the group's id or state contains the pattern, without regard to case."""
    wanted = pattern.casefold()
    return wanted in row.group_id.casefold() or wanted in row.state.casefold()


def coordinator_line(pulse: Pulse, rows: Sequence[FleetRow], is_complete: bool) -> str:
    """What the line above the table says: the active job, its backlog and answers, and sums over all groups."""
    if not is_complete:
        return pulse.problem or "reading the coordinator's topics ..."
    parts = [_active(pulse)]
    if pulse.backlog is not None:
        parts.append(f"backlog {pulse.backlog:,}")
    if pulse.answer_ms is not None:
        parts.append(f"answers in {pulse.answer_ms:.0f} ms")
    rebalances = sum(row.rebalances_a_minute for row in rows)
    parts.append(f"{counted(len(rows), 'group')}, {counted(sum(row.members for row in rows), 'member')}")
    parts.append(f"{rebalances:.1f} rebalances/min")
    return " | ".join(parts)


def _active(pulse: Pulse) -> str:
    job = pulse.active
    if job is None:
        return pulse.problem or "the active job is not known yet"
    if job.is_released:
        return f"no active job: that on {job.host} has stopped"
    line = f"active: {job.host}, process {job.process_id}, epoch {job.epoch}"
    return line if pulse.silent_seconds < SILENT_SECONDS else f"{line}, silent for {pulse.silent_seconds:.0f} s"


def _duration(seconds: float) -> str:
    """``42 s``, ``7 min``, ``3 h`` or ``5 d``; a time in the future is none."""
    whole = max(0, round(seconds))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"
