"""Keeps the latest value of every key of a compacted topic."""

from collections.abc import Callable
from typing import Generic, TypeVar

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from streaming.client.librdkafka import required_partition_count
from streaming.client.topic_consumer import is_end
from streaming.contract.records import RecordDecoder

ValueT = TypeVar("ValueT")


class LatestValues(Generic[ValueT]):
    """The latest value of each key of a topic, as far as its records were added. Not thread-safe.

    Partitions that were added to a topic give some keys another partition; then the record that was appended last
    holds, in whatever order they are read. ``decode`` and ``key_of`` are those of
    :class:`~streaming.contract.records.RecordDecoder`, and so is what happens to a record that cannot be read: the key
    keeps the value that it had.
    """

    def __init__(
        self,
        topic: str,
        kind: str,
        decode: Callable[[bytes], ValueT],
        key_of: Callable[[ValueT], bytes],
        partitions: int,
    ) -> None:
        self._decoder = RecordDecoder(topic, kind, decode, key_of)
        self._values: dict[bytes | None, ValueT] = {}
        self._appended: dict[bytes | None, tuple[int, int]] | None = {} if partitions > 1 else None
        """When a key's record was appended, ms since the epoch, and its partition."""

    @property
    def values(self) -> list[ValueT]:
        """The latest value of every key, in no particular order; deleted keys have none."""
        return list(self._values.values())

    def value(self, key: bytes) -> ValueT | None:
        """The latest value of a key; None if it has none."""
        return self._values.get(key)

    @property
    def unreadable(self) -> int:
        """How many records were ignored because they cannot be read."""
        return self._decoder.skipped

    def add(self, record: Message) -> None:
        """Add a record, which is no error."""
        key, value = record.key(), self._decoder.read(record)
        if value is None and record.value() is not None:
            return
        if self._appended is not None:
            _, time = record.timestamp()
            partition = record.partition() or 0
            before = self._appended.get(key)
            if before is not None and before[1] != partition and before[0] > time:
                return
            self._appended[key] = time, partition
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def forget_deleted(self) -> None:
        """Forget when keys without a value were deleted: every record so far was added."""
        if self._appended is not None:
            self._appended = {key: place for key, place in self._appended.items() if key in self._values}


class CompactedTopic(LatestValues[ValueT]):
    """The values of one topic, as far as what its consumer returned was passed to :meth:`apply`.

    The constructor assigns all partitions of the topic to ``consumer``, from their beginning. The consumer needs the
    settings :data:`~streaming.client.topic_consumer.TO_END`.

    Raises as :func:`~streaming.client.librdkafka.required_partition_count`, whose ``timeout`` (in seconds) it takes.
    """

    def __init__(
        self,
        consumer: Consumer,
        topic: str,
        kind: str,
        decode: Callable[[bytes], ValueT],
        key_of: Callable[[ValueT], bytes],
        timeout: float,
    ) -> None:
        count = required_partition_count(consumer, topic, timeout)
        super().__init__(topic, kind, decode, key_of, count)
        self.positions = dict.fromkeys(range(count), 0)
        """By partition, the offset of the next record."""
        self._unfinished = set(self.positions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in self._unfinished])

    @property
    def is_complete(self) -> bool:
        """Whether every partition was read to its end once."""
        return not self._unfinished

    def apply(self, record: Message) -> KafkaError | None:
        """Apply what the consumer returned; returns its error, unless that is the end of a partition."""
        partition, offset = record.partition() or 0, record.offset() or 0
        if is_end(record):
            # Behind the last record: compaction may have removed that one.
            self.positions[partition] = offset
            if self._unfinished:
                self._unfinished.discard(partition)
                if not self._unfinished:
                    self.forget_deleted()
            return None
        error = record.error()
        if error is None:
            self.add(record)
            self.positions[partition] = offset + 1
        return error
