"""``group-coordinator top``: all groups, now, in the terminal."""

from typing import Annotated

from coordinator_logic.messages import FetchedGroup, GroupToFetch
from streaming.cli.connection import Connection, connected
from streaming.cli.console import USAGE, fail, require
from streaming.cli.described_groups import describe, headline, lines_of_members
from streaming.cli.help_output import option
from streaming.client import CoordinatorClient, CoordinatorError
from streaming.client.errors import error_of

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
    with connection.client() as client, LiveFleet(client, probe_seconds) as fleet:
        FleetScreen(fleet, lambda group_id: description(client, group_id), sort).run()


def description(client: CoordinatorClient, group_id: str) -> str:
    """The page of one group as text: its state, its members with their assignments, and its offsets."""
    try:
        group = describe(client, [group_id])[0]
        fetched = client.offset_fetch([GroupToFetch(group_id)]).groups[0]
    except CoordinatorError as failure:
        return str(failure)
    if group.error_code:
        return error_of(group.error_code).name
    lines = ["".join(headline(group)), "", *lines_of_members(group)]
    return "\n".join([*lines, "", *_offset_lines(fetched)])


def _offset_lines(fetched: FetchedGroup) -> list[str]:
    if fetched.error_code:
        return [f"offsets: {error_of(fetched.error_code).name}"]
    lines = [
        f"{topic.name}:{partition.partition_index} = {partition.committed_offset}"
        for topic in sorted(fetched.topics, key=lambda topic: topic.name)
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    ]
    return ["committed offsets:", *(f"    {line}" for line in lines)] if lines else ["no committed offsets"]
