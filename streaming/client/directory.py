"""Reads the compacted topic in which every group has one line."""

import logging
import time

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from coordinator_logic.records import GroupDirectoryEntry
from streaming.client.errors import CoordinatorNotAvailable, RequestTimedOut
from streaming.client.librdkafka import LibrdkafkaConfig, new_consumer, required_partition_count

log = logging.getLogger(__name__)

_decode_entry = msgspec.json.Decoder(GroupDirectoryEntry).decode


def read_directory(
    bootstrap_servers: str, topic: str, client_id: str, config: LibrdkafkaConfig, timeout: float
) -> list[GroupDirectoryEntry]:
    """Every group's last line, by group id; groups that are gone have none. ``timeout`` in seconds.

    The coordinator writes a line with the answers of the batch in which a group changed.

    Raises:
        CoordinatorNotAvailable: there is no such topic, or no broker answers.
        RequestTimedOut: the topic could not be read to its end in time.
    """
    deadline = time.monotonic() + timeout
    settings: LibrdkafkaConfig = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
    consumer = new_consumer(bootstrap_servers, client_id, config, settings)
    try:
        count = required_partition_count(consumer, topic, timeout)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(count)])
        entries = _read_to_the_end(consumer, topic, count, deadline)
    finally:
        consumer.close()
    return sorted(entries.values(), key=lambda entry: entry.group_id)


def _read_to_the_end(
    consumer: Consumer, topic: str, partitions: int, deadline: float
) -> dict[bytes | None, GroupDirectoryEntry]:
    entries: dict[bytes | None, GroupDirectoryEntry] = {}
    unfinished = set(range(partitions))
    while unfinished:
        remaining = deadline - time.monotonic()
        record = consumer.poll(remaining) if remaining > 0 else None
        if record is None:
            raise RequestTimedOut(f"topic {topic!r} could not be read to its end in time")
        error = record.error()
        if error is None:
            take_line(entries, record.key(), record.value())
        elif error.code() == KafkaError._PARTITION_EOF:
            unfinished.discard(record.partition())
        elif not error.retriable():
            raise CoordinatorNotAvailable(f"reading topic {topic!r}: {error.str()}") from KafkaException(error)
    return entries


def take_line(entries: dict[bytes | None, GroupDirectoryEntry], key: bytes | None, value: bytes | None) -> None:
    """Take a record of the directory over into what was read of it so far."""
    if value is None:
        entries.pop(key, None)
        return
    try:
        entries[key] = _decode_entry(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as failure:
        log.warning("ignored a line of the directory that cannot be read, key %r: %s", key, failure)
