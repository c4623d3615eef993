"""A consumer of the demo that uses an unmodified Kafka client, as a process of its own.

It reaches the coordinator only through its bootstrap address. Its reports are those of
:mod:`streaming.demo.consumer_process`, without generations, which these clients do not expose.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from importlib.util import find_spec
from typing import Annotated, Literal

import typer
from confluent_kafka import Consumer

from streaming.demo.consumer_process import (
    AUTO_COMMIT_INTERVAL_MS,
    HEARTBEAT_INTERVAL_MS,
    POLL_SECONDS,
)
from streaming.demo.consumer_reports import ConsumerReport, write_report
from streaming.embedded.stop_signals import stop_requested

MOST_RECORDS = 500

KAFKA_PYTHON_POLL_SECONDS = 2.0
"""Longer than a join takes: kafka-python forgets a join that outlasts a poll, see docs/clients.md.

Records end a poll at once.
"""

Poll = Callable[[], Mapping[int, list[int]]]
"""Polls once; returns the offsets of the records, by partition."""


class ClientLibrary(StrEnum):
    """The client libraries of the demo."""

    LIBRDKAFKA = "librdkafka"
    KAFKA_PYTHON = "kafka-python"


def installed_clients() -> list[ClientLibrary]:
    """The client libraries that are installed; kafka-python is optional (the extra ``demo``)."""
    return [ClientLibrary.LIBRDKAFKA, *([ClientLibrary.KAFKA_PYTHON] if find_spec("kafka") else [])]


def librdkafka(bootstrap_servers: str, group: str, topic: str) -> tuple[Poll, Callable[[], None]]:
    """Open a consumer of confluent-kafka; returns the functions that poll and close it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "client.id": ClientLibrary.LIBRDKAFKA.value,
            "partition.assignment.strategy": "range",
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
            "auto.commit.interval.ms": AUTO_COMMIT_INTERVAL_MS,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: _report("owns", (each.partition for each in partitions)),
        on_revoke=lambda _, partitions: _report("revoked", (each.partition for each in partitions)),
    )

    def poll() -> dict[int, list[int]]:
        offsets: dict[int, list[int]] = {}
        for message in consumer.consume(MOST_RECORDS, POLL_SECONDS):
            partition, offset = message.partition(), message.offset()
            if message.error() is None and partition is not None and offset is not None:
                offsets.setdefault(partition, []).append(offset)
        return offsets

    return poll, consumer.close


def kafka_python(bootstrap_servers: str, group: str, topic: str) -> tuple[Poll, Callable[[], None]]:
    """Open a consumer of kafka-python; returns the functions that poll and close it."""
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Iterable[tuple[str, int]]) -> None:
            _report("owns", (index for _, index in assigned))

        def on_partitions_revoked(self, revoked: Iterable[tuple[str, int]]) -> None:
            _report("revoked", (index for _, index in revoked))

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        group_id=group,
        client_id=ClientLibrary.KAFKA_PYTHON.value,
        partition_assignment_strategy=[RangePartitionAssignor],
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        auto_commit_interval_ms=AUTO_COMMIT_INTERVAL_MS,
        auto_offset_reset="earliest",
    )
    consumer.subscribe([topic], listener=Listener())

    def poll() -> dict[int, list[int]]:
        records = consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_SECONDS * 1000, max_records=MOST_RECORDS)
        return {partition.partition: [record.offset for record in batch] for partition, batch in records.items()}

    return poll, consumer.close


def _report(event: Literal["owns", "revoked"], partitions: Iterable[int]) -> None:
    changed = sorted(partitions)
    if event == "owns" or changed:
        write_report(ConsumerReport(event, partitions=changed))


OPENERS = {ClientLibrary.LIBRDKAFKA: librdkafka, ClientLibrary.KAFKA_PYTHON: kafka_python}


def main(
    client: Annotated[ClientLibrary, typer.Option()],
    bootstrap_servers: Annotated[str, typer.Option()],
    group: Annotated[str, typer.Option()],
    topic: Annotated[str, typer.Option()],
) -> None:
    """Consume until SIGTERM."""
    with stop_requested() as stop:
        poll, close = OPENERS[client](bootstrap_servers, group, topic)
        while not stop.is_set():
            for partition, offsets in poll().items():
                write_report(ConsumerReport("consumed", partitions=[partition], first=offsets[0], last=offsets[-1]))
        close()
    write_report(ConsumerReport("closed"))


if __name__ == "__main__":
    typer.run(main)
