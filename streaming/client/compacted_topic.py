"""Keeps the latest value of every key of a compacted topic."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from streaming.client.librdkafka import required_partition_count
from streaming.client.topic_consumer import is_end

log = logging.getLogger(__name__)

ValueT = TypeVar("ValueT")


class LatestValues(Generic[ValueT]):
    """The latest value of each key of a topic, as far as its records were added. Not thread-safe.

    ``decode`` may raise msgspec.DecodeError, UnicodeDecodeError or RecursionError: such a record is logged, counted and
    ignored.
    """

    def __init__(self, topic: str, decode: Callable[[bytes], ValueT]) -> None:
        self._topic = topic
        self._decode = decode
        self._values: dict[bytes | None, ValueT] = {}
        self._unreadable = 0

    @property
    def values(self) -> list[ValueT]:
        """The latest value of every key, in no particular order; deleted keys have none."""
        return list(self._values.values())

    def value(self, key: bytes) -> ValueT | None:
        """The latest value of a key; None if it has none."""
        return self._values.get(key)

    @property
    def unreadable(self) -> int:
        """How many records were ignored because they cannot be decoded."""
        return self._unreadable

    def add(self, record: Message) -> None:
        """Add a record, which is no error."""
        key, value = record.key(), record.value()
        if value is None:
            self._values.pop(key, None)
            return
        try:
            self._values[key] = self._decode(value)
        # RecursionError: deeply nested JSON.
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
            self._unreadable += 1
            log.warning("ignoring an unreadable record of topic %s, key %r: %s", self._topic, key, failure)


class CompactedTopic(LatestValues[ValueT]):
    """The values of one topic, as far as what its consumer returned was passed to :meth:`apply`.

    The constructor assigns all partitions of the topic to ``consumer``, from their beginning. The consumer needs the
    settings :data:`~streaming.client.topic_consumer.TO_END`.

    Raises as :func:`~streaming.client.librdkafka.required_partition_count`, whose ``timeout`` (in seconds) it takes.
    """

    def __init__(self, consumer: Consumer, topic: str, decode: Callable[[bytes], ValueT], timeout: float) -> None:
        super().__init__(topic, decode)
        self._unfinished = set(range(required_partition_count(consumer, topic, timeout)))
        consumer.assign([TopicPartition(topic, partition, 0) for partition in self._unfinished])

    @property
    def is_complete(self) -> bool:
        """Whether every partition was read to its end once."""
        return not self._unfinished

    def apply(self, record: Message) -> KafkaError | None:
        """Apply what the consumer returned; returns its error, unless that is the end of a partition."""
        if is_end(record):
            self._unfinished.discard(record.partition() or 0)
            return None
        error = record.error()
        if error is None:
            self.add(record)
        return error
