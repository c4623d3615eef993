"""``group-coordinator top``: all groups, now, in the terminal."""

import sys
from typing import Annotated

import typer

from streaming.cli.connection import Connection, connected
from streaming.cli.console import USAGE, err, fail, out, print_json, require
from streaming.cli.help_output import option
from streaming.client import CoordinatorClient, CoordinatorError
from streaming.explain.live.columns import COLUMNS, column_of, coordinator_line, ordered
from streaming.explain.live.group import description, offsets_now, one_group_now
from streaming.explain.live.readers import LiveFleet

Sort = Annotated[str, option(metavar="COLUMN", text="Sort by this column at the beginning.")]
ProbeSeconds = Annotated[
    int, option(metavar="SECONDS", text="How often to measure the time of an answer; 0 for never.", min=0)
]


@connected
def top(connection: Connection, sort: Sort = "rebalances", probe_seconds: ProbeSeconds = 5) -> None:
    """Show all groups as of now: state, members, lag, rebalances a minute, and how the coordinator does.

    Sort with s and r, filter with /, open a group with Enter, quit with q; ? shows all keys.

    With --json, or if the output is not a terminal, print all groups once and end.

    The lag is that of the offsets that were committed in the last ten minutes or since the start.
    """
    if sort not in (keys := [column.key for column in COLUMNS]):
        fail(f"there is no column {sort!r}: {', '.join(keys)}", USAGE)
    if connection.as_json or not sys.stdout.isatty():
        with connection.client() as client, LiveFleet(client, probe_seconds=0) as fleet:
            fleet.wait_until_read(connection.timeout)
            _print_once(fleet, sort, as_json=connection.as_json)
        return
    require("top", "top")
    from streaming.explain.live.screen import FleetScreen

    with connection.live_client() as client, LiveFleet(client, probe_seconds) as fleet:
        screen = FleetScreen(fleet, lambda group_id: page_of(client, group_id), sort)
        screen.run()
    raise typer.Exit(screen.return_code or 0)


def _print_once(fleet: LiveFleet, sort: str, *, as_json: bool) -> None:
    column = column_of(sort)
    rows = ordered(fleet.rows(), column, is_descending=column.is_descending)
    if as_json:
        print_json({"coordinator": fleet.pulse(), "groups": rows})
        return
    err.line(coordinator_line(fleet.pulse(), rows, is_complete=True))
    out.table([column.title for column in COLUMNS], [[column.text(row) for column in COLUMNS] for row in rows])


def page_of(client: CoordinatorClient, group_id: str) -> str:
    """The page of one group as text: its state, its members with their assignments, and its offsets."""
    try:
        return description(one_group_now(client, group_id), offsets_now(client, group_id))
    except CoordinatorError as failure:
        return str(failure)
