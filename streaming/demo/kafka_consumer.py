"""A consumer of the demo that uses a Kafka client as it is, in a process of its own. It knows of no coordinator but
the one that the address it is given leads to.

It tells what :mod:`streaming.demo.consumer_process` tells, without generations, which these clients keep to themselves.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Annotated

import typer
from confluent_kafka import Consumer
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from streaming.demo.consumer_process import (
    AUTO_COMMIT_INTERVAL_MS,
    HEARTBEAT_INTERVAL_MS,
    POLL_SECONDS,
    ConsumerReport,
    tell,
)
from streaming.signals import stop_requested

MOST_RECORDS = 500

KAFKA_PYTHON_POLL_SECONDS = 2.0
"""Longer than a join takes, which kafka-python forgets when a poll ends in it: see README, "Known of clients". Records
end a poll at once."""

Poll = Callable[[], Mapping[int, list[int]]]
"""The offsets of the records that came, by partition."""


class Client(StrEnum):
    """The client libraries."""

    LIBRDKAFKA = "librdkafka"
    KAFKA_PYTHON = "kafka-python"


def librdkafka(bootstrap_servers: str, group: str, topic: str) -> tuple[Poll, Callable[[], None]]:
    """How to poll and how to close a consumer of confluent-kafka."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "client.id": Client.LIBRDKAFKA.value,
            "partition.assignment.strategy": "range",
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
            "auto.commit.interval.ms": AUTO_COMMIT_INTERVAL_MS,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: _tell("owns", (found.partition for found in partitions)),
        on_revoke=lambda _, partitions: _tell("revoked", (found.partition for found in partitions)),
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
    """How to poll and how to close a consumer of kafka-python."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        group_id=group,
        client_id=Client.KAFKA_PYTHON.value,
        partition_assignment_strategy=[RangePartitionAssignor],
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        auto_commit_interval_ms=AUTO_COMMIT_INTERVAL_MS,
        auto_offset_reset="earliest",
    )
    consumer.subscribe([topic], listener=_Listener())

    def poll() -> dict[int, list[int]]:
        records = consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_SECONDS * 1000, max_records=MOST_RECORDS)
        return {partition.partition: [record.offset for record in batch] for partition, batch in records.items()}

    return poll, consumer.close


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_assigned(self, assigned: Iterable[tuple[str, int]]) -> None:
        """All that it owns now."""
        _tell("owns", (index for _, index in assigned))

    def on_partitions_revoked(self, revoked: Iterable[tuple[str, int]]) -> None:
        """Given up."""
        _tell("revoked", (index for _, index in revoked))


def _tell(event: str, partitions: Iterable[int]) -> None:
    owned = sorted(partitions)
    if event == "owns" or owned:
        tell(ConsumerReport("owns" if event == "owns" else "revoked", partitions=owned))


OPENERS = {Client.LIBRDKAFKA: librdkafka, Client.KAFKA_PYTHON: kafka_python}


def main(
    client: Annotated[Client, typer.Option()],
    bootstrap_servers: Annotated[str, typer.Option()],
    group: Annotated[str, typer.Option()],
    topic: Annotated[str, typer.Option()],
) -> None:
    """Consume until SIGTERM."""
    with stop_requested() as stop:
        poll, close = OPENERS[client](bootstrap_servers, group, topic)
        while not stop.is_set():
            for partition, offsets in poll().items():
                tell(ConsumerReport("consumed", partitions=[partition], first=offsets[0], last=offsets[-1]))
        close()
    tell(ConsumerReport("closed"))


if __name__ == "__main__":
    typer.run(main)
