"""``group-coordinator broker``: a Kafka broker for this machine."""

from pathlib import Path
from typing import Annotated

from streaming.cli.console import AsJson, failures_as_lines, out, print_json
from streaming.cli.help_output import option
from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.stop_signals import stop_requested


def broker(
    data_dir: Annotated[
        Path | None, option(metavar="FOLDER", text="Folder of the broker's data.", default="a temporary folder")
    ] = None,
    port: Annotated[
        int, option(metavar="PORT", text="Port on 127.0.0.1.", default="any free port", min=0, max=65535)
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Run a Kafka broker on this machine until Ctrl-C or SIGTERM."""
    # The signals are handled before the address is printed: its reader may send one at once.
    with failures_as_lines(), stop_requested() as stop, EmbeddedBroker(data_dir=data_dir, port=port) as running:
        if as_json:
            print_json({"bootstrapServers": running.bootstrap_servers, "dataDir": str(running.data_dir)})
        else:
            out.line(f"Kafka listens on {running.bootstrap_servers} (data in {running.data_dir}); Ctrl-C stops it.")
        stop.wait()
