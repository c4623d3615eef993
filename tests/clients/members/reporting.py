"""What the members' programs share: command-line options and reported events, as in Kafka's VerifiableConsumer."""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["HEARTBEAT_INTERVAL_MS", "POLL_SECONDS", "EventReporter", "consumer_settings", "parse_options", "report"]

HEARTBEAT_INTERVAL_MS = 500
"""Short, because members learn of a rebalance from a heartbeat."""

POLL_SECONDS = 0.2

Partition = tuple[str, int]


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group-id", required=True)
    parser.add_argument("--group-instance-id")
    parser.add_argument("--group-protocol", default="classic")
    parser.add_argument("--group-remote-assignor")
    parser.add_argument("--session-timeout", type=int)
    parser.add_argument("--assignment-strategy")
    parser.add_argument("--enable-autocommit", action="store_true")
    return parser.parse_args()


def consumer_settings(options: argparse.Namespace, assignors: Mapping[str, type]) -> dict[str, Any]:
    """The settings of a consumer, under the names that kafka-python and aiokafka share."""
    return {
        "bootstrap_servers": options.bootstrap_server,
        "group_id": options.group_id,
        "group_instance_id": options.group_instance_id,
        "session_timeout_ms": options.session_timeout,
        "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        "partition_assignment_strategy": [assignors[options.assignment_strategy]],
        "auto_offset_reset": "earliest",
        "enable_auto_commit": options.enable_autocommit,
    }


def report(event: Mapping[str, object]) -> None:
    """Write an event as one line with a single call, since the library's log goes to the same pipe.

    ``print`` may write the newline separately, and does with PYTHONUNBUFFERED.
    """
    sys.stdout.write(f"{json.dumps(event)}\n")
    sys.stdout.flush()


class EventReporter:
    """Reports a member's events at once: the process may be killed at any moment."""

    def started(self) -> None:
        """The program has started."""
        self._report("startup_complete")

    def assigned(self, partitions: Iterable[Partition]) -> None:
        """Partitions were assigned; a cooperative member may omit those that it keeps."""
        self._report("partitions_assigned", partitions=_named(partitions))

    def revoked(self, partitions: Iterable[Partition]) -> None:
        """Partitions were revoked."""
        self._report("partitions_revoked", partitions=_named(partitions))

    def consumed(self, offsets: Mapping[Partition, list[int]]) -> None:
        """Records with these offsets were delivered."""
        spans = [
            {"topic": topic, "partition": partition, "count": len(found), "minOffset": found[0], "maxOffset": found[-1]}
            for (topic, partition), found in offsets.items()
        ]
        self._report("records_consumed", count=sum(map(len, offsets.values())), partitions=spans)

    def committed(self, offsets: Mapping[Partition, int], error: str = "") -> None:
        """A commit succeeded, or failed with ``error``."""
        named = [{"topic": topic, "partition": index, "offset": offset} for (topic, index), offset in offsets.items()]
        self._report("offsets_committed", offsets=named, success=not error, **({"error": error} if error else {}))

    def closed(self) -> None:
        """The consumer was closed."""
        self._report("shutdown_complete")

    def _report(self, name: str, **fields: object) -> None:
        report({"timestamp": time.time_ns() // 1_000_000, "name": name, **fields})


def _named(partitions: Iterable[Partition]) -> list[dict[str, object]]:
    return [{"topic": topic, "partition": partition} for topic, partition in partitions]
