"""The client libraries under test, each with a program that joins a group."""

import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from tests.clients.members.reporting import HEARTBEAT_INTERVAL_MS
from tests.clients.programs.java import tool

__all__ = ["CLASSIC", "CONSUMER", "Library", "member_command"]

CLASSIC, CONSUMER = "classic", "consumer"
"""The values of ``group.protocol``."""

JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


class Library(Enum):
    """A client library; the value is its program's module, None for Kafka's VerifiableConsumer."""

    JAVA = None
    LIBRDKAFKA = "tests.clients.members.librdkafka"
    NEWEST_LIBRDKAFKA = "tests.clients.members.newest_librdkafka"
    KAFKA_PYTHON = "tests.clients.members.kafka_python"
    AIOKAFKA = "tests.clients.members.asyncio_kafka"

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")


def member_command(
    library: Library,
    folder: Path,
    assignor: str | None,
    options: Mapping[str, object],
    *,
    auto_commit: bool = False,
    protocol: str = CLASSIC,
) -> list[str]:
    """The command of a member. ``options`` are VerifiableConsumer's, by name; one that is None is omitted.

    With the consumer group protocol, the coordinator decides about session and heartbeats, and the assignor is one of
    its own.
    """
    arguments = [part for name, value in options.items() if value is not None for part in (f"--{name}", str(value))]
    arguments += ["--enable-autocommit"] if auto_commit else []
    if protocol == CONSUMER:
        arguments += ["--group-protocol", CONSUMER]
        arguments += ["--group-remote-assignor", assignor] if assignor else []
        if library is not Library.JAVA:
            return [sys.executable, "-m", library.value, *arguments]
        return tool("kafka-verifiable-consumer", *arguments)
    assignor = assignor or "range"
    if library is not Library.JAVA:
        return [sys.executable, "-m", library.value, *arguments, "--assignment-strategy", assignor]
    properties = folder / "verifiable-consumer.properties"
    properties.write_text(f"heartbeat.interval.ms={HEARTBEAT_INTERVAL_MS}\n")
    strategy = f"org.apache.kafka.clients.consumer.{JAVA_ASSIGNORS[assignor]}"
    chosen = ("--assignment-strategy", strategy, "--consumer.config", properties)
    return tool("kafka-verifiable-consumer", *arguments, *chosen)
