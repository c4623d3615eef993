"""``group-coordinator ui``: all groups and their stories, in a browser."""

import threading
from typing import Annotated

from streaming.cli.boundary import errors_as_lines
from streaming.cli.connection import Connection, connected
from streaming.cli.console import reporter
from streaming.cli.help_output import option
from streaming.cli.usage import taking
from streaming.contract.option_values import HostName
from streaming.contract.ports import require_free_port
from streaming.explain.live.readers import LiveFleet
from streaming.explain.ui.guard import is_loopback
from streaming.explain.ui.routes import Site
from streaming.explain.ui.server import serving
from streaming.explain.ui.source import CoordinatorSource

Host = Annotated[str, option(metavar="ADDRESS", text="The address to serve at. There is no login.")]
Port = Annotated[int, option(metavar="PORT", text="The port to serve at; 0 takes a free one.", min=0, max=65_535)]
AllowHost = Annotated[
    list[str] | None,
    option(
        metavar="NAME",
        text="Accept requests for this host name too, such as a proxy's, without a port. Repeatable.",
        callback=taking(HostName),
    ),
]
ProbeSeconds = Annotated[
    int, option(metavar="SECONDS", text="How often to measure how long an answer takes; 0 turns it off.", min=0)
]


@connected
def ui(
    connection: Connection,
    host: Host = "127.0.0.1",
    port: Port = 0,
    allow_host: AllowHost = None,
    probe_seconds: ProbeSeconds = 0,
) -> None:
    """Serve the list of groups, each group with its timeline, and a search to browsers, until Ctrl-C.

    It only reads. There is no login: everyone who reaches its address can read all groups. By default, only this
    machine reaches it.
    """
    report = reporter(connection.as_json)
    with errors_as_lines():
        require_free_port(host, port, "--port")
    with (
        errors_as_lines(),
        connection.live_client() as client,
        LiveFleet(client, probe_seconds) as fleet,
        serving(Site(CoordinatorSource(client, fleet), allow_host or ()), host, port) as served,
    ):
        if not is_loopback(host):
            report(f"everybody who reaches {host} can read all groups: there is no login")
        report(f"ready: http://{f'[{host}]' if ':' in host else host}:{served}/")
        threading.Event().wait()
