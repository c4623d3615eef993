"""Tables in terminals of several widths: what is important is whole, and what is left out is named."""

import io
import re
from collections.abc import Iterable, Sequence

import pytest
from rich.console import Console

from streaming.cli.commands.checkpoint import BATCH_COLUMNS
from streaming.cli.commands.groups import GROUP_COLUMNS
from streaming.cli.commands.offsets.carrying_out import PLAN_COLUMNS
from streaming.cli.commands.offsets.changes import CHANGE_COLUMNS
from streaming.cli.commands.offsets.listing import OFFSET_COLUMNS
from streaming.cli.group_types import MEMBER_TABLES
from streaming.contract.output.columns import Column
from streaming.contract.output.terminal import Cell, Terminal
from streaming.explain.live.partitions import NOTE, PARTITION_TABLE

LONG = "billing-europe-payments-card-authorisations-prod-1"
TOPIC = "payments.authorised"
OWNER = f"{LONG[:20]}-0f3c7e1a-5d2b-4c0e-9a7d-3b1f6e2c8d90 at /10.20.30.40"

assert len(LONG) == 50


class TerminalStream(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(columns: Iterable[str | Column], rows: Sequence[Sequence[Cell]], width: int) -> list[str]:
    """The lines of a table in a terminal of this width."""
    stream = TerminalStream()
    Terminal(Console(file=stream, width=width, force_terminal=True, color_system=None)).table(columns, rows)
    lines = re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue()).splitlines()
    assert all(len(line) <= width for line in lines if not line.startswith("not shown")), "\n".join(lines)
    assert not any("…" in line for line in lines), "\n".join(lines)
    return lines


def cells(lines: Sequence[str]) -> dict[str, str]:
    """The cells of a table of one row by their titles, each with its lines joined."""

    def joined(mark: str) -> list[str]:
        parts = [[part.strip() for part in line.split(mark)[1:-1]] for line in lines if line.startswith(mark)]
        return ["".join(column) for column in zip(*parts, strict=True)]

    return dict(zip(joined("┃"), joined("│"), strict=True))


def left_out(lines: Sequence[str]) -> set[str]:
    """The titles in the line below a table."""
    named = re.fullmatch(r"not shown in \d+ columns: (.+); a wider terminal or --json has them", lines[-1])
    return set(named[1].split(", ")) if named else set()


GROUPS = (GROUP_COLUMNS, (LONG, "PreparingRebalance", "consumer", "consumer"))
PARTITIONS = ((*PARTITION_TABLE, NOTE), (TOPIC, "17", "123456789", "123456999", "210", OWNER, ""))
OFFSETS = (OFFSET_COLUMNS, (TOPIC, "17", "123456789", "123456999", "210", OWNER, "3", "checkpointed", "beyond the end"))
MEMBERS = (MEMBER_TABLES["classic"].columns, (LONG, "-", "client-1", "/10.20.30.40", ["orders: 0, 1, 2", "audit: 7"]))
CONSUMERS = (
    MEMBER_TABLES["consumer"].columns,
    (LONG, "i-1", "client-1", "/10.20.30.40", "consumer", "7", "orders, audit", "orders: 0, 1, 2", "revokes orders: 2"),
)
PLAN = (PLAN_COLUMNS, (TOPIC, "17", "123456789", "123456700", "89", "-", "299", "set to the end of the log"))
CHANGES = (
    CHANGE_COLUMNS,
    ("2026-11-24 03:12:00.123Z", "orders", "17", "42", "40", "7", "ResetOffsets", OWNER, "skips a broken record"),
)
BATCHES = (
    BATCH_COLUMNS,
    ("2026-11-24 03:12:00Z", "57", "1,204", "98,304,112", "0.1.0", "/backups/2026-11-23T12-00-00.000000Z-batch-57"),
)
IMPORTANT = {"GROUP", "STATE", "MEMBER", "ASSIGNMENT", "TOPIC", "PARTITION", "OFFSET", "LAG", "FROM", "TO", "FOLDER"}

TABLES = [GROUPS, PARTITIONS, OFFSETS, MEMBERS, CONSUMERS, PLAN, CHANGES, BATCHES]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("table", TABLES)
def test_each_column_is_whole_or_named_below_the_table(
    table: tuple[Sequence[str | Column], Sequence[Cell]], width: int
) -> None:
    columns, row = table
    texts = {
        each if isinstance(each, str) else each.title: "".join(cell) for each, cell in zip(columns, row, strict=True)
    }
    lines = shown(columns, [row], width)
    found, missing = cells(lines), left_out(lines)
    # A cell that is broken in lines loses the spaces at which it is.
    assert {title: text.replace(" ", "") for title, text in found.items()} == {
        title: text.replace(" ", "") for title, text in texts.items() if title in found
    }
    assert missing == {title for title, text in texts.items() if title not in found and text not in ("", "-")}
    assert missing.isdisjoint(IMPORTANT)


@pytest.mark.parametrize(
    ("table", "width", "titles"),
    [
        (GROUPS, 80, {"TYPE", "PROTOCOL TYPE"}),
        (GROUPS, 120, set()),
        (PARTITIONS, 60, {"END", "OWNER"}),
        (PARTITIONS, 80, {"END"}),
        (OFFSETS, 120, {"LEADER EPOCH"}),
        (MEMBERS, 80, {"HOST", "CLIENT"}),
        (CONSUMERS, 120, {"INSTANCE", "CLIENT", "PROTOCOL", "SUBSCRIPTION"}),
        (PLAN, 80, {"REPLAYED"}),
        (CHANGES, 120, set()),
        (BATCHES, 80, {"FILES", "VERSION", "BYTES"}),
    ],
)
def test_what_is_less_important_makes_room(
    table: tuple[Sequence[str | Column], Sequence[Cell]], width: int, titles: set[str]
) -> None:
    columns, row = table
    assert left_out(shown(columns, [row], width)) == titles


def test_what_is_important_stays_in_one_line_as_long_as_it_fits() -> None:
    for columns, row in (GROUPS, PARTITIONS):
        assert any(str(row[0]) in line for line in shown(columns, [row], 80))
    (_, _, _, line, *_) = shown(GROUP_COLUMNS, [(LONG, "Stable", "classic", "consumer")], 66)
    assert line.split() == ["│", LONG, "│", "Stable", "│"]


def test_a_column_without_text_makes_room_first_and_is_not_named() -> None:
    rows = [(TOPIC, str(number), "1", "2", "1", "a" * 24, "") for number in range(100)]
    lines = shown((*PARTITION_TABLE, NOTE), rows, 88)
    assert left_out(lines) == set()
    assert "NOTE" not in lines[1]
    assert "OWNER" in lines[1]
    assert len(lines) == len(rows) + 4


def test_a_line_is_not_broken_for_a_column_that_is_less_important() -> None:
    row = ("orders", "0", "25", "25", "0", "billing-1-d5e12206-176f-5a49-ab71-d6ee41bf2ec2 at /127.0.0.1", "0", "", "")
    lines = shown(OFFSET_COLUMNS, [row], 120)
    assert left_out(lines) == {"LEADER EPOCH"}
    assert any(row[5] in line for line in lines)
    assert left_out(shown(OFFSET_COLUMNS, [row], 121)) == set()


def test_wide_characters_count_twice() -> None:
    lines = shown(("GROUP", Column("STATE", rank=1)), [("支払" * 10, "Stable")], 50)
    assert left_out(lines) == {"STATE"}
    assert left_out(shown(("GROUP", Column("STATE", rank=1)), [("支払" * 10, "Stable")], 60)) == set()
