"""Reads from the end of ``group-rebalances`` how far its records have come."""

from collections.abc import Iterator
from functools import reduce

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streaming.client.errors import CoordinatorNotAvailable, RequestTimedOut
from streaming.client.librdkafka import (
    LibrdkafkaConfig,
    beginning_offset,
    end_offset,
    new_consumer,
    required_partition_count,
)
from streaming.contract.errors import CannotRun
from streaming.job.group_batch.starts import later

FIRST_LOOK = 100
"""How many offsets before the end are read at first; each transaction takes one for its end."""

SETTINGS: LibrdkafkaConfig = {
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    # A fetch at the end of a partition waits at the broker, by default 500 ms.
    "fetch.wait.max.ms": 10,
}


class _Positions(msgspec.Struct, rename="camel"):
    journal_positions: dict[int, int]


_decode = msgspec.json.Decoder(_Positions).decode


def published_positions(config: LibrdkafkaConfig, topic: str, client_id: str, timeout: float) -> dict[int, int] | None:
    """The highest positions in the newest records: by partition of the journal, the offset of the next entry.

    Returns:
        None if the topic never had a record, and no position if it has none any more.

    Raises:
        CannotRun: the topic has records, but none with positions.
        CoordinatorNotAvailable: the topic does not exist, or cannot be read.
        RequestTimedOut: no broker answers within ``timeout`` seconds.
    """
    consumer = new_consumer(str(config["bootstrap.servers"]), client_id, config, SETTINGS)
    try:
        found = [
            _of_partition(consumer, topic, partition, timeout)
            for partition in range(required_partition_count(consumer, topic, timeout))
        ]
    finally:
        consumer.close()
    known = [positions for positions in found if positions is not None]
    return reduce(later, known) if known else None


def _of_partition(consumer: Consumer, topic: str, partition: int, timeout: float) -> dict[int, int] | None:
    begin = beginning_offset(consumer, topic, partition, timeout)
    end = end_offset(consumer, topic, partition, timeout)
    look, first, has_records = FIRST_LOOK, end, False
    while begin < first:
        first = max(begin, end - look)
        consumer.assign([TopicPartition(topic, partition, first)])
        found = [_positions(value) for value in _values(consumer, topic, end, timeout)]
        if readable := [positions for positions in found if positions is not None]:
            return reduce(later, readable)
        look, has_records = look * 10, has_records or bool(found)
    if has_records:
        raise CannotRun(f"topic {topic} has records of somebody else, and none that was published: delete the topic")
    return {} if begin > 0 else None


def _positions(value: bytes | None) -> dict[int, int] | None:
    try:
        return _decode(value or b"").journal_positions
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _values(consumer: Consumer, topic: str, end: int, timeout: float) -> Iterator[bytes | None]:
    """The values up to an offset."""
    while True:
        record = consumer.poll(timeout)
        if record is None:
            raise RequestTimedOut(f"topic {topic!r} could not be read to its end: nothing came for {timeout:g} s")
        error = record.error()
        if error is None:
            yield record.value()
        elif error.code() == KafkaError._PARTITION_EOF and _offset(record) >= end:
            return
        elif error.code() != KafkaError._PARTITION_EOF and not error.retriable():
            raise CoordinatorNotAvailable(f"topic {topic!r} cannot be read: {error.str()}") from KafkaException(error)


def _offset(record: Message) -> int:
    return record.offset() or 0
