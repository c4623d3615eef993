"""``group-coordinator top``: all groups, now, in the terminal."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from streaming.cli.connection import Connection, connected
from streaming.cli.console import USAGE, err, fail, out, print_json, require
from streaming.cli.help_output import option
from streaming.client import CoordinatorClient, CoordinatorError
from streaming.contract.option_values import one_of
from streaming.explain.live.columns import COLUMNS, column_of, coordinator_line, ordered
from streaming.explain.live.group import description, group_with_partitions
from streaming.explain.live.readers import LiveFleet

COLUMN_NAMES = tuple(column.key for column in COLUMNS)

Sort = Annotated[
    str, option(metavar="COLUMN", text=f"Sort by this column: {', '.join(COLUMN_NAMES)}.", values=COLUMN_NAMES)
]
ProbeSeconds = Annotated[
    int, option(metavar="SECONDS", text="How often to measure how long an answer takes; 0 turns it off.", min=0)
]


@connected
def top(connection: Connection, sort: Sort = "rebalances", probe_seconds: ProbeSeconds = 5) -> None:
    """Show all groups as of now: state, members, lag, rebalances a minute, and the state of the coordinator.

    Sort with s and r, filter with /, open a group with Enter, quit with q; ? shows all keys.

    With --json, or if the output is not a terminal, print all groups once and end.

    The lag is that of the offsets that were committed in the last ten minutes or since the start.
    """
    if sort not in COLUMN_NAMES:
        fail(f"--sort: {sort!r} is not {one_of(COLUMN_NAMES)}", USAGE)
    if connection.as_json or not out.is_interactive:
        with connection.client() as client, LiveFleet(client, probe_seconds=0) as fleet:
            fleet.wait_until_read(connection.timeout)
            _print_once(fleet, sort, as_json=connection.as_json)
        return
    require("top", "top")
    from streaming.explain.live.screen import FleetScreen

    with connection.live_client() as client, LiveFleet(client, probe_seconds) as fleet:
        screen = FleetScreen(fleet, lambda group_id: page_of(client, group_id), sort)
        with _signals_restored():
            screen.run()
    raise typer.Exit(screen.return_code or 0)


@contextmanager
def _signals_restored() -> Iterator[None]:
    """Let SIGINT do again what it did before the block, in which the screen has it."""
    handler, wakeup = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)


def _print_once(fleet: LiveFleet, sort: str, *, as_json: bool) -> None:
    column = column_of(sort)
    rows = ordered(fleet.rows(), column, is_descending=column.is_descending)
    if as_json:
        print_json({"coordinator": fleet.pulse(), "groups": rows})
        return
    err.line(coordinator_line(fleet.pulse(), rows, is_complete=True))
    out.table([column.title for column in COLUMNS], [[column.text(row) for column in COLUMNS] for row in rows])


def page_of(client: CoordinatorClient, group_id: str) -> str:
    """The page of one group as text: its state, its members with their assignments, and its partitions."""
    try:
        return description(*group_with_partitions(client, group_id))
    except CoordinatorError as failure:
        return str(failure)
