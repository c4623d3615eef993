"""``group-coordinator broker``: a Kafka broker for this machine."""

from pathlib import Path
from typing import Annotated

from streaming.cli.boundary import errors_as_lines
from streaming.cli.console import AsJson, out, print_json
from streaming.cli.help_output import option
from streaming.contract.folders import require_writable
from streaming.contract.ports import require_free_port
from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.broker_watch import ending_with_broker
from streaming.embedded.folder_lock import require_unused
from streaming.embedded.interruption import take_time_to_stop
from streaming.embedded.ports import HOST
from streaming.embedded.stop_signals import stop_requested


def broker(
    data_dir: Annotated[
        Path | None, option(metavar="FOLDER", text="Folder of the broker's data.", default="a temporary folder")
    ] = None,
    port: Annotated[
        int,
        option(
            metavar="PORT",
            text="Port on 127.0.0.1.",
            default="the folder's last one, or any free one",
            min=0,
            max=65535,
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Run a Kafka broker on this machine until Ctrl-C or SIGTERM."""
    with errors_as_lines():
        if data_dir is not None:
            require_writable(data_dir)
        require_unused(data_dir)
        require_free_port(HOST, port, "--port")
    # The signals are handled before the address is printed: its reader may send one at once.
    with (
        errors_as_lines(),
        stop_requested() as stop,
        EmbeddedBroker(data_dir=data_dir, port=port) as running,
        ending_with_broker(running, keeps_log=data_dir is not None),
    ):
        if as_json:
            print_json({"bootstrapServers": running.bootstrap_servers, "dataDir": str(running.data_dir)})
        else:
            out.line(f"Kafka listens on {running.bootstrap_servers} (data in {running.data_dir}); Ctrl-C stops it.")
        take_time_to_stop()
        stop.wait()
