"""Runs the coordinator, before a Kafka cluster or with a broker of its own."""

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from streaming.broker import EmbeddedBroker
from streaming.gateway.child import running_gateway
from streaming.job import run_job
from streaming.options import BadOptions, JobOptions, load_options

__all__ = ["BadOptions", "GatewayChoice", "run_coordinator"]

CHECKPOINT_VARIABLE = "GROUP_COORDINATOR_CHECKPOINT"


class GatewayChoice(NamedTuple):
    """That a gateway is to run with the coordinator; ``listen`` None: where it listens by default."""

    listen: str | None


def run_coordinator(
    flags: Mapping[str, object],
    bootstrap_servers: str | None,
    config: Path | None,
    embedded_port: int | None,
    report: Callable[[str], None],
    gateway: GatewayChoice | None = None,
) -> None:
    """Run the job with these flags, the environment and the file until SIGTERM or Ctrl-C.

    ``embedded_port`` is the port of a broker to start for it (0: any free one), None for none. The broker keeps its
    data beside the checkpoint, or, where no checkpoint is given, both are kept in a temporary folder.
    """
    with ExitStack() as stack:
        flags = dict(flags)
        if embedded_port is not None:
            if bootstrap_servers is not None:
                raise BadOptions(
                    "bootstrap-servers (given as --bootstrap-servers): --embedded brings a broker of its own"
                )
            bootstrap_servers = _embedded_broker(flags, config, embedded_port, stack, report)
        options = load_options({**flags, "bootstrap_servers": bootstrap_servers}, os.environ, config)
        if gateway is not None:
            stack.enter_context(running_gateway(_gateway_options(options, gateway), report))
        run_job(options, report)


def _embedded_broker(
    flags: dict[str, object], config: Path | None, port: int, stack: ExitStack, report: Callable[[str], None]
) -> str:
    """Start a broker; its address. A checkpoint that nobody has named is added to the flags."""
    if flags.get("checkpoint") is None and CHECKPOINT_VARIABLE not in os.environ and config is None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="group-coordinator-"))
        flags["checkpoint"] = str(Path(folder) / "checkpoint")
        report("no checkpoint given: the groups are kept until this command ends")
    # Checked before the broker is started, which takes seconds.
    checkpoint = load_options({**flags, "bootstrap_servers": "embedded"}, os.environ, config).checkpoint
    data_dir = Path(f"{checkpoint.rstrip('/')}.kafka")
    if "://" in checkpoint:
        raise BadOptions(f"checkpoint {checkpoint}: with --embedded it must be a folder, the broker lives beside it")
    broker = stack.enter_context(EmbeddedBroker(data_dir=data_dir, port=port))
    report(f"Kafka listens on {broker.bootstrap_servers}")
    return broker.bootstrap_servers


def _gateway_options(options: JobOptions, gateway: GatewayChoice) -> dict[str, str]:
    """The gateway asks the same brokers in the same way, and writes to the same topics."""
    listen = {} if gateway.listen is None else {"listen": gateway.listen}
    kafka = {f"kafka.{key}": value for key, value in options.librdkafka_config.items() if key != "bootstrap.servers"}
    return {
        "bootstrap-servers": options.bootstrap_servers,
        "topic-prefix": options.topic_prefix,
        **listen,
        **kafka,
    }
