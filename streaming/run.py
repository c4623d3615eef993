"""Runs the coordinator, before a Kafka cluster or with a broker of its own."""

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from streaming.broker import EmbeddedBroker
from streaming.job import run_job
from streaming.options import BadOptions, load_options

__all__ = ["BadOptions", "run_coordinator"]

CHECKPOINT_VARIABLE = "GROUP_COORDINATOR_CHECKPOINT"


def run_coordinator(
    flags: Mapping[str, object],
    bootstrap_servers: str | None,
    config: Path | None,
    embedded_port: int | None,
    report: Callable[[str], None],
) -> None:
    """Run the job with these flags, the environment and the file until SIGTERM or Ctrl-C.

    ``embedded_port`` is the port of a broker to start for it (0: any free one), None for none. The broker keeps its
    data beside the checkpoint, or, where no checkpoint is given, both are kept in a temporary folder.
    """
    if embedded_port is None:
        run_job(load_options({**flags, "bootstrap_servers": bootstrap_servers}, os.environ, config), report)
        return
    if bootstrap_servers is not None:
        raise BadOptions("bootstrap-servers (given as --bootstrap-servers): --embedded brings a broker of its own")
    with ExitStack() as stack:
        flags = dict(flags)
        if flags.get("checkpoint") is None and CHECKPOINT_VARIABLE not in os.environ and config is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="group-coordinator-"))
            flags["checkpoint"] = str(Path(folder) / "checkpoint")
            report("no checkpoint given: the groups are kept until this command ends")
        # Checked before the broker is started, which takes seconds.
        checkpoint = load_options({**flags, "bootstrap_servers": "embedded"}, os.environ, config).checkpoint
        data_dir = Path(f"{checkpoint.rstrip('/')}.kafka")
        if "://" in checkpoint:
            raise BadOptions(
                f"checkpoint {checkpoint}: with --embedded it must be a folder, the broker lives beside it"
            )
        broker = stack.enter_context(EmbeddedBroker(data_dir=data_dir, port=embedded_port))
        report(f"Kafka listens on {broker.bootstrap_servers}")
        run_job(load_options({**flags, "bootstrap_servers": broker.bootstrap_servers}, os.environ, config), report)
