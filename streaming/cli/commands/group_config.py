"""``group-coordinator groups configure``: a consumer group's own timeouts."""

from typing import Annotated

import typer
from rich.table import Table

from streaming.cli.connection import Connection, connected
from streaming.cli.console import REFUSED, fail, key_values, out, print_json
from streaming.client.errors import CoordinatorError

GroupId = Annotated[str, typer.Argument(metavar="GROUP", help="Group id.")]
Changes = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME=VALUE]...", help="Values to set, for example consumer.session.timeout.ms=60000."),
]


@connected
def configure_group(connection: Connection, group: GroupId, changes: Changes = None) -> None:
    """Show or change what a consumer group has of its own: session timeout, heartbeat and assignment interval.

    NAME= removes a value; the coordinator's own then holds again. Members get a change with their next heartbeat.
    """
    wanted = {name: value or None for name, value in key_values(changes, "a change").items()}
    with connection.client() as client:
        try:
            configs = client.set_group_config(group, wanted)
        except CoordinatorError as failure:
            fail(failure.message, REFUSED)
    if connection.as_json:
        print_json(configs)
        return
    table = Table("NAME", "VALUE")
    for name, value in configs.items():
        table.add_row(name, value)
    out.print(table)
