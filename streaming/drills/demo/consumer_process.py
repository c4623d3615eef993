"""A consumer of the demo, as a process of its own so that it can be killed. It uses one of three client libraries.

It writes a :class:`ConsumerReport` to standard output for everything that
happens to it. SIGTERM closes it cleanly.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, Literal

import msgspec

from streaming.contract.output.logs import log_to_stderr
from streaming.contract.output.plain import print_json
from streaming.embedded.stop_signals import stop_requested

POLL_SECONDS = 0.2
MOST_RECORDS = 500

KAFKA_PYTHON_POLL_SECONDS = 2.0
"""Longer than a join takes: kafka-python forgets a join that outlasts a poll, see docs/clients.md.

Records end a poll at once.
"""

Poll = Callable[[], Mapping[int, list[int]]]
"""Polls once; returns the offsets of the records, by partition."""


class ClientLibrary(StrEnum):
    """The client libraries of the demo: this project's, and two unmodified Kafka clients."""

    STREAMING = "streaming.client"
    LIBRDKAFKA = "librdkafka"
    KAFKA_PYTHON = "kafka-python"


def installed_kafka_clients() -> list[ClientLibrary]:
    """The Kafka clients that are installed; kafka-python is optional (the extra ``demo``)."""
    return [ClientLibrary.LIBRDKAFKA, *([ClientLibrary.KAFKA_PYTHON] if find_spec("kafka") else [])]


class ConsumerReport(msgspec.Struct, rename="camel", omit_defaults=True):
    """A line of a consumer's output.

    owns: the consumer owns exactly ``partitions`` in ``generation``. revoked, lost: it no longer owns ``partitions``.
    consumed: it has consumed the offsets ``first`` to ``last`` of one partition. closed: it has ended.
    """

    event: Literal["owns", "revoked", "lost", "consumed", "closed"]
    generation: int = -1
    partitions: list[int] = []
    first: int = -1
    last: int = -1

    def described(self, consumer: str) -> str:
        """The report for people; empty for records, of which there are many."""
        partitions = " ".join(map(str, self.partitions)) or "none"
        match self.event:
            case "owns":
                return f"{consumer} owns {partitions}" + f" in generation {self.generation}" * (self.generation >= 0)
            case "revoked":
                return f"{consumer} gives up {partitions}"
            case "lost":
                return f"{consumer} loses {partitions}"
            case "closed":
                return f"{consumer} has closed"
            case _:
                return ""


def write_report(report: ConsumerReport) -> None:
    """Write a line to standard output and flush it: a kill -9 may be next."""
    print_json(report)


class AssignmentReporter:
    """Writes a report of every change of the assignment. generation: -1 where the library does not tell it."""

    def __init__(self) -> None:
        self.generation = -1
        self._owned: set[int] = set()

    def assigned(self, partitions: Iterable[int]) -> None:
        """Report all partitions that the consumer owns now, not only the added ones."""
        self._owned |= set(partitions)
        write_report(ConsumerReport("owns", self.generation, sorted(self._owned)))

    def removed(self, event: Literal["revoked", "lost"], partitions: Iterable[int]) -> None:
        """Report partitions that the consumer has given up or lost, if there are any."""
        removed = sorted(partitions)
        self._owned -= set(removed)
        if removed:
            write_report(ConsumerReport(event, self.generation, removed))


def streaming_client(
    topic: str, properties: Mapping[str, Any], reporter: AssignmentReporter
) -> tuple[Poll, Callable[[], None]]:
    """Open a consumer of this project's client; returns the functions that poll and close it."""
    from coordinator_logic.embedded_protocols import TopicPartition
    from streaming.client import Consumer, MemberEvent, MemberEventKind, RebalanceListener

    class Listener(RebalanceListener):
        def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
            reporter.assigned(each.partition for each in partitions)

        def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
            reporter.removed("revoked", (each.partition for each in partitions))

        def on_partitions_lost(self, partitions: Iterable[TopicPartition]) -> None:
            reporter.removed("lost", (each.partition for each in partitions))

    def on_member_event(event: MemberEvent) -> None:
        if event.kind is MemberEventKind.JOINED:
            reporter.generation = event.generation.generation_id

    consumer = Consumer(**_as_arguments(properties), observer=on_member_event)
    consumer.subscribe([topic], Listener())
    return lambda: _by_partition((each.partition, each.offset) for each in consumer.poll(POLL_SECONDS)), consumer.close


def librdkafka(
    topic: str, properties: Mapping[str, Any], reporter: AssignmentReporter
) -> tuple[Poll, Callable[[], None]]:
    """Open a consumer of confluent-kafka; returns the functions that poll and close it."""
    from confluent_kafka import Consumer

    consumer = Consumer({**properties, "partition.assignment.strategy": "range"})
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: reporter.assigned(each.partition for each in partitions),
        on_revoke=lambda _, partitions: reporter.removed("revoked", (each.partition for each in partitions)),
    )

    def poll() -> dict[int, list[int]]:
        messages = consumer.consume(MOST_RECORDS, POLL_SECONDS)
        return _by_partition((each.partition(), each.offset()) for each in messages if each.error() is None)

    return poll, consumer.close


def kafka_python(
    topic: str, properties: Mapping[str, Any], reporter: AssignmentReporter
) -> tuple[Poll, Callable[[], None]]:
    """Open a consumer of kafka-python; returns the functions that poll and close it."""
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Iterable[tuple[str, int]]) -> None:
            reporter.assigned(index for _, index in assigned)

        def on_partitions_revoked(self, revoked: Iterable[tuple[str, int]]) -> None:
            reporter.removed("revoked", (index for _, index in revoked))

    consumer = KafkaConsumer(**_as_arguments(properties), partition_assignment_strategy=[RangePartitionAssignor])
    consumer.subscribe([topic], listener=Listener())

    def poll() -> dict[int, list[int]]:
        records = consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_SECONDS * 1000, max_records=MOST_RECORDS)
        return {partition.partition: [record.offset for record in batch] for partition, batch in records.items()}

    return poll, consumer.close


def _as_arguments(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Kafka's properties as the arguments of a Python client."""
    return {name.replace(".", "_"): value for name, value in properties.items()}


def _by_partition(places: Iterable[tuple[Any, Any]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for partition, offset in places:
        found.setdefault(partition, []).append(offset)
    return found


OPENERS = {
    ClientLibrary.STREAMING: streaming_client,
    ClientLibrary.LIBRDKAFKA: librdkafka,
    ClientLibrary.KAFKA_PYTHON: kafka_python,
}


def main(library: ClientLibrary, topic: str, properties: Mapping[str, Any]) -> None:
    """Consume until SIGTERM. properties: Kafka's, by their names."""
    with stop_requested() as stop:
        poll, close = OPENERS[library](topic, properties, AssignmentReporter())
        while not stop.is_set():
            for partition, offsets in poll().items():
                write_report(ConsumerReport("consumed", partitions=[partition], first=offsets[0], last=offsets[-1]))
        close()
    write_report(ConsumerReport("closed"))


if __name__ == "__main__":
    log_to_stderr()
    main(ClientLibrary(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
