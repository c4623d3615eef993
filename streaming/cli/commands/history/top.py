"""``group-coordinator top``: all groups, now, in the terminal."""

from typing import Annotated

from streaming.cli.connection import Connection, connected
from streaming.cli.console import USAGE, fail, require
from streaming.cli.help_output import option
from streaming.client import CoordinatorClient, CoordinatorError
from streaming.explain.live.group import description, offsets_now, one_group_now

Sort = Annotated[str, option(metavar="COLUMN", text="Sort by this column at the beginning.")]
ProbeSeconds = Annotated[
    int, option(metavar="SECONDS", text="How often to measure the time of an answer; 0 for never.", min=0)
]


@connected
def top(connection: Connection, sort: Sort = "rebalances", probe_seconds: ProbeSeconds = 5) -> None:
    """Show all groups as of now: state, members, lag, rebalances a minute, and how the coordinator does.

    Sort with s and r, filter with /, open a group with Enter, quit with q.

    The lag is that of the offsets that were committed in the last ten minutes or since the start.
    """
    require("top", "top")
    from streaming.explain.live.columns import COLUMNS
    from streaming.explain.live.readers import LiveFleet
    from streaming.explain.live.screen import FleetScreen

    if sort not in (keys := [column.key for column in COLUMNS]):
        fail(f"there is no column {sort!r}: {', '.join(keys)}", USAGE)
    with connection.live_client() as client, LiveFleet(client, probe_seconds) as fleet:
        FleetScreen(fleet, lambda group_id: page_of(client, group_id), sort).run()


def page_of(client: CoordinatorClient, group_id: str) -> str:
    """The page of one group as text: its state, its members with their assignments, and its offsets."""
    try:
        return description(one_group_now(client, group_id), offsets_now(client, group_id))
    except CoordinatorError as failure:
        return str(failure)
