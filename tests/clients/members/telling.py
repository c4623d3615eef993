"""The options of a member, and what it tells: those of Kafka's VerifiableConsumer, so that all clients can be watched
in the same way."""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping

__all__ = ["HEARTBEAT_INTERVAL_MS", "POLL_SECONDS", "Teller", "parse_options", "tell_line"]

HEARTBEAT_INTERVAL_MS = 500
"""Members learn of a rebalance by their heartbeats."""

POLL_SECONDS = 0.2

Partition = tuple[str, int]


def parse_options() -> argparse.Namespace:
    """The options on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group-id", required=True)
    parser.add_argument("--group-instance-id")
    parser.add_argument("--session-timeout", type=int, required=True)
    parser.add_argument("--assignment-strategy", required=True)
    parser.add_argument("--enable-autocommit", action="store_true")
    return parser.parse_args()


def tell_line(event: Mapping[str, object]) -> None:
    """Write a line, in one piece: what a library logs goes to the same pipe.

    ``print`` may write the end of a line by itself; with PYTHONUNBUFFERED it does.
    """
    sys.stdout.write(f"{json.dumps(event)}\n")
    sys.stdout.flush()


class Teller:
    """Writes a line for everything that happens, at once: the next thing to happen may be a kill -9."""

    def started(self) -> None:
        """The program runs."""
        self._tell("startup_complete")

    def assigned(self, partitions: Iterable[Partition]) -> None:
        """These are the member's now; those that it had already need not be among them."""
        self._tell("partitions_assigned", partitions=_named(partitions))

    def revoked(self, partitions: Iterable[Partition]) -> None:
        """These are the member's no more."""
        self._tell("partitions_revoked", partitions=_named(partitions))

    def consumed(self, offsets: Mapping[Partition, list[int]]) -> None:
        """Records were handed over, with these offsets."""
        spans = [
            {"topic": topic, "partition": partition, "count": len(found), "minOffset": found[0], "maxOffset": found[-1]}
            for (topic, partition), found in offsets.items()
        ]
        self._tell("records_consumed", count=sum(map(len, offsets.values())), partitions=spans)

    def committed(self, offsets: Mapping[Partition, int], error: str = "") -> None:
        """The outcome of a commit."""
        named = [{"topic": topic, "partition": index, "offset": offset} for (topic, index), offset in offsets.items()]
        self._tell("offsets_committed", offsets=named, success=not error, **({"error": error} if error else {}))

    def closed(self) -> None:
        """The consumer is closed."""
        self._tell("shutdown_complete")

    def _tell(self, name: str, **fields: object) -> None:
        tell_line({"timestamp": time.time_ns() // 1_000_000, "name": name, **fields})


def _named(partitions: Iterable[Partition]) -> list[dict[str, object]]:
    return [{"topic": topic, "partition": partition} for topic, partition in partitions]
