"""Reads the requests of one group from the requests topic."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from streaming.client.errors import CoordinatorError, CoordinatorNotAvailable, RequestTimedOut
from streaming.client.librdkafka import (
    LibrdkafkaConfig,
    beginning_offset,
    end_offset,
    new_consumer,
    required_partition_count,
)
from streaming.explain.replay.case import RecordedRequest
from streaming.journal.reader import next_records

__all__ = ["RequestLog", "Stretch", "requests_of"]

CLIENT_ID = "group-coordinator-replay"
SETTINGS: LibrdkafkaConfig = {"enable.partition.eof": True, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 10}


class Stretch(NamedTuple):
    """A part of a partition: from ``begin`` to before ``end``; ``kept_from`` is the first offset that is kept."""

    partition: int
    begin: int
    end: int
    kept_from: int

    @property
    def records(self) -> int:
        """How many records it has at most."""
        return max(0, self.end - self.begin)


class Kept(NamedTuple):
    """Requests of a group, and when the first record of any group was appended: None if there was none."""

    requests: list[RecordedRequest]
    first: int | None


class RequestLog:
    """The requests topic, until the end of a ``with`` block.

    ``timeout`` is the longest wait for the next record, in seconds. Records that are no JSON are left out; the
    coordinator rejects them.

    Raises:
        CoordinatorNotAvailable: the topic does not exist, or cannot be read.
        RequestTimedOut: no broker answers, or no further records come in time.
    """

    def __init__(
        self, bootstrap_servers: str, config: LibrdkafkaConfig, topic: str, timeout: float, client_id: str = CLIENT_ID
    ) -> None:
        self._topic, self._timeout = topic, timeout
        self._consumer = new_consumer(bootstrap_servers, client_id, config, SETTINGS)
        try:
            self.partitions = required_partition_count(self._consumer, topic, timeout)
        except CoordinatorError:
            self._consumer.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._consumer.close()

    def stretch(self, partition: int, since: int = 0, until: int | None = None) -> Stretch:
        """What was appended to a partition from ``since`` to ``until`` (ms since the epoch)."""
        low = beginning_offset(self._consumer, self._topic, partition, self._timeout)
        high = end_offset(self._consumer, self._topic, partition, self._timeout)
        begin = low if since <= 0 else self._offset_at(partition, since, high)
        end = high if until is None else self._offset_at(partition, until + 1, high)
        return Stretch(partition, begin, end, low)

    def read(
        self, stretches: Sequence[Stretch], group_id: str, on_read: Callable[[int], object] = lambda _count: None
    ) -> Kept:
        """The requests of a group; ``on_read`` is called with the number of records that were read since last."""
        ends = {one.partition: one.end for one in stretches if one.records}
        self._consumer.assign([TopicPartition(self._topic, one.partition, one.begin) for one in stretches])
        key, kept, first = group_id.encode(), list[RecordedRequest](), None
        while ends:
            records = next_records(self._consumer, self._timeout)
            if not records:
                raise RequestTimedOut(
                    f"topic {self._topic!r} could not be read to its end: nothing came for {self._timeout:g} s"
                )
            on_read(len(records))
            for record in records:
                partition, offset = record.partition() or 0, record.offset() or 0
                if record.error() is not None:
                    if self._is_end(record):
                        ends.pop(partition, None)
                    continue
                end = ends.get(partition, 0)
                if offset < end:
                    time = record.timestamp()[1]
                    first = time if first is None else min(first, time)
                    if record.key() == key:
                        kept += _recorded(record)
                if offset >= end - 1:
                    ends.pop(partition, None)
        return Kept(kept, first)

    def _offset_at(self, partition: int, time: int, high: int) -> int:
        try:
            (found,) = self._consumer.offsets_for_times([TopicPartition(self._topic, partition, time)], self._timeout)
        except KafkaException as error:
            raise CoordinatorNotAvailable(f"topic {self._topic!r} cannot be read: {error}") from error
        return found.offset if found.offset >= 0 else high

    def _is_end(self, record: Message) -> bool:
        """Whether an error is the end of a partition. Raises CoordinatorNotAvailable for one that will not pass."""
        error = record.error()
        assert error is not None
        if error.code() != KafkaError._PARTITION_EOF and not error.retriable():
            raise CoordinatorNotAvailable(f"topic {self._topic!r} cannot be read: {error.str()}")
        return error.code() == KafkaError._PARTITION_EOF


def requests_of(
    bootstrap_servers: str, config: LibrdkafkaConfig, topic: str, group_id: str, timeout: float
) -> list[RecordedRequest]:
    """The requests of a group that the topic still holds; arguments and errors as of :class:`RequestLog`.

    All partitions are read: a producer other than the clients and the gateway may use any.
    """
    with RequestLog(bootstrap_servers, config, topic, timeout) as log:
        return log.read([log.stretch(partition) for partition in range(log.partitions)], group_id).requests


def _recorded(record: Message) -> list[RecordedRequest]:
    value = record.value()
    try:
        raw = msgspec.json.decode(value or b"", type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    # The message's buffer ends with the message.
    return [RecordedRequest(record.timestamp()[1], record.partition() or 0, record.offset() or 0, raw.copy())]
