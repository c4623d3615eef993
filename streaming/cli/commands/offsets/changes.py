"""``group-coordinator offsets history`` and ``offsets diff``: who moved the offsets of a group."""

from collections import deque
from typing import Annotated

import typer

from streaming.cli.commands.offsets.reading import changes_in_journal, offsets_as_of, selected
from streaming.cli.connection import Connection, connected
from streaming.cli.console import REFUSED, err, fail, out, print_json, time_given
from streaming.cli.group_selection import GroupId, require_group
from streaming.cli.help_output import flag, option
from streaming.contract.output.columns import Column
from streaming.explain.offsets.history_rows import ChangeRow, change_row, difference_rows

CHANGE_COLUMNS = (
    *("TIME", "TOPIC", "PARTITION", "FROM", "TO"),
    *(Column("GENERATION", rank=4), Column("CAUSE", rank=2, least=15), Column("BY", rank=1, least=14)),
    Column("REASON", rank=3, least=10),
)


@connected
def history(
    connection: Connection,
    group: GroupId,
    partitions: Annotated[
        str, typer.Argument(metavar="[TOPIC[:PARTITIONS]]", help="Only these partitions.", show_default=False)
    ] = "",
    since: Annotated[
        str | None, option(metavar="TIME", text="Only changes since then: a time, or an age such as 2h.")
    ] = None,
    until: Annotated[str | None, option(metavar="TIME", text="Only changes until then.")] = None,
    backwards: Annotated[bool, flag("--backwards", "Only offsets that went back, or were deleted.")] = False,
    last: Annotated[int, option(metavar="N", text="Only the last N changes.", min=1)] = 1_000,
) -> None:
    """Show who changed the committed offsets of a group: when, in which generation, from what to what, and why.

    A commit in a transaction is shown at the transaction's end.
    """
    begin = 0 if since is None else time_given(since, "--since")
    end = None if until is None else time_given(until, "--until")
    topic, numbers = selected(partitions, "the argument") if partitions else ("", None)
    with connection.errors_as_lines():
        changes = changes_in_journal(connection, group)
    if not changes:
        with connection.client() as client:
            require_group(client, group)
        fail(f"{connection.topics.journal} has no offsets of group {group}", REFUSED)
    kept = deque(
        (
            change_row(change)
            for change in changes
            if begin <= change.entry.timestamp and (end is None or change.entry.timestamp <= end)
            if topic in ("", change.partition.topic) and (numbers is None or change.partition.partition in numbers)
            if change.goes_back or not backwards
        ),
        maxlen=last,
    )
    if connection.as_json:
        print_json(list(kept))
    else:
        _print_changes(kept)


@connected
def diff(
    connection: Connection,
    group: GroupId,
    begin: Annotated[str, option("--from", metavar="TIME", text="The earlier time, or an age such as 2h.")],
    end: Annotated[str, option("--to", metavar="TIME", text="The later time; 0s for now.")] = "0s",
) -> None:
    """Show which committed offsets of a group differ between two times, and by how much."""
    times = [time_given(begin, "--from"), time_given(end, "--to")]
    with connection.errors_as_lines():
        (before, knows_before), (after, _) = offsets_as_of(connection, group, times, must_exist=False)
    if not (before or after):
        with connection.client() as client:
            require_group(client, group)
    if not knows_before:
        err.line(f"{group} is older than {connection.topics.journal}: offsets may be missing")
    rows = difference_rows(before, after)
    if connection.as_json:
        print_json(rows)
        return
    cells = []
    for row in rows:
        moved = "" if row.before is None or row.after is None else f"{row.after - row.before:+}"
        cells.append((row.topic, str(row.partition), _offset(row.before), _offset(row.after), moved))
    out.table(("TOPIC", "PARTITION", "FROM", "TO", "MOVED"), cells)


def _print_changes(rows: deque[ChangeRow]) -> None:
    cells = [
        (
            f"{row.at:%Y-%m-%d %H:%M:%S}.{row.at.microsecond // 1000:03}Z",
            row.topic,
            str(row.partition),
            _offset(row.before) if row.knows_before else "?",
            _offset(row.after),
            _offset(row.generation),
            row.cause,
            _sender(row),
            row.reason,
        )
        for row in rows
    ]
    out.table(CHANGE_COLUMNS, cells)


def _sender(row: ChangeRow) -> str:
    if row.client_id is None:
        return "-"
    name = row.member_id or row.client_id
    principal = "" if row.principal is None else f" as {row.principal}{' (claimed)' if row.claimed else ''}"
    return f"{name} at {row.client_host}{principal}"


def _offset(offset: int | None) -> str:
    return "-" if offset is None else str(offset)
