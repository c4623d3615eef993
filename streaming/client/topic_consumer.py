"""A consumer of one topic that joins no group, and the one way to read a topic to its end."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streaming.client.errors import CoordinatorError, CoordinatorNotAvailable, NotAuthorized, RequestTimedOut
from streaming.client.librdkafka import (
    LibrdkafkaConfig,
    beginning_offset,
    end_offset,
    new_consumer,
    required_partition_count,
)
from streaming.contract.rights.refusals import is_refusal, not_allowed
from streaming.contract.rights.table import Operation

__all__ = ["EAGER", "TO_END", "TopicConsumer", "is_end"]

FETCHED_TOGETHER = 10_000

GROWTH_SECONDS = 10.0
"""How often whoever follows a topic looks for partitions that were added to it."""

GROWTH_LIMIT_SECONDS = 1.0
"""How long that look waits for a broker."""

TO_END: LibrdkafkaConfig = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
"""The settings of a consumer that reads a topic from some offset, and hears of the ends of its partitions."""

EAGER: LibrdkafkaConfig = {**TO_END, "fetch.wait.max.ms": 10}
"""The same for a reading that ends: a fetch at the end of a partition waits at the broker, by default 500 ms."""


def is_end(record: Message) -> bool:
    """Whether a consumer with :data:`TO_END` returned the end of a partition in place of a record."""
    error = record.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF


class TopicConsumer:
    """A consumer of one topic, until :meth:`close` or the end of a ``with`` block. Not thread-safe.

    ``config`` is librdkafka's; ``settings`` override it. ``timeout`` is the limit of each query and the longest wait
    for the next records, in seconds.

    Raises:
        CoordinatorNotAvailable: the topic does not exist, or cannot be read.
        RequestTimedOut: no broker answers, or no further records come in time.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        client_id: str,
        config: LibrdkafkaConfig,
        timeout: float,
        settings: LibrdkafkaConfig = EAGER,
    ) -> None:
        self.topic = topic
        self.positions: dict[int, int] = {}
        """By assigned partition, the offset of the next record; only readings with ``ends`` keep it current."""
        self._timeout = timeout
        self._unfinished: set[int] = set()
        self._new_consumer = partial(new_consumer, bootstrap_servers, client_id, config, settings)
        self._consumer: Consumer = self._new_consumer()
        try:
            self.partitions = range(required_partition_count(self._consumer, topic, timeout))
        except BaseException:
            self._consumer.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def renew(self) -> None:
        """Go on with a new consumer, from where this one is.

        A consumer of librdkafka 2.13 to 2.16 that was told of no broker never asks again. A cluster's only broker says
        so while it starts or ends (confluentinc/librdkafka#5301).
        """
        self._consumer.close()
        self._consumer = self._new_consumer()
        self.assign(self.positions)

    def beginnings(self, partitions: Iterable[int]) -> dict[int, int]:
        """The lowest offset in the log of each of these partitions."""
        return {one: beginning_offset(self._consumer, self.topic, one, self._timeout) for one in partitions}

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """The offset of the next record to be appended to each of these partitions."""
        return {one: end_offset(self._consumer, self.topic, one, self._timeout) for one in partitions}

    def offsets_at(self, times: Mapping[int, int]) -> dict[int, int]:
        """The first offset of each partition that was appended at or after a time, ms since the epoch.

        It is the end of the partition if there is none.
        """
        wanted = [TopicPartition(self.topic, partition, time) for partition, time in times.items()]
        try:
            found = self._consumer.offsets_for_times(wanted, self._timeout) if wanted else []
        except KafkaException as error:
            raise CoordinatorNotAvailable(f"topic {self.topic!r} cannot be read: {error}") from error
        offsets = {one.partition: one.offset for one in found}
        return offsets | self.ends(partition for partition, offset in offsets.items() if offset < 0)

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on, and no others."""
        self.positions = dict(offsets)
        self._consumer.assign([TopicPartition(self.topic, partition, offset) for partition, offset in offsets.items()])

    def leave(self, partition: int) -> None:
        """Read no more of an assigned partition."""
        self._unfinished.discard(partition)
        self._consumer.pause([TopicPartition(self.topic, partition)])

    def read_to_end(
        self,
        ends: Mapping[int, int] | None = None,
        within: float | None = None,
        on_read: Callable[[int], object] = lambda _count: None,
    ) -> Iterator[Message]:
        """The records of the assigned partitions up to their ends.

        Args:
            ends: By partition, the offset before which to stop, or some more; None: where a partition ends when its
                last record has come.
            within: The limit of the whole reading, in seconds; None: none.
            on_read: Called with the number of records and ends of partitions that have come together.
        """
        deadline = None if within is None else time.monotonic() + within
        self._unfinished = {one for one, position in self.positions.items() if ends is None or position < ends[one]}
        while self._unfinished:
            wait = self._timeout if deadline is None else deadline - time.monotonic()
            records = self.next_records(wait) if wait > 0 else []
            if not records:
                limit = f": nothing came for {self._timeout:g} s" if within is None else f" within {within:g} s"
                raise RequestTimedOut(f"topic {self.topic!r} could not be read to its end{limit}")
            on_read(len(records))
            for record in records:
                if ends is None and record.error() is None:
                    yield record
                    continue
                if self.note(record):
                    yield record
                partition = record.partition() or 0
                if is_end(record) if ends is None else self.positions[partition] >= ends[partition]:
                    self._unfinished.discard(partition)

    def follow(self, pause: float) -> Iterator[Message | None]:
        """The records that come, without an end; None whenever none has come for ``pause`` seconds.

        Partitions that are added to the topic are read from their beginning.
        """
        look_at = time.monotonic() + GROWTH_SECONDS
        while True:
            if time.monotonic() >= look_at:
                self._read_added_partitions()
                look_at = time.monotonic() + GROWTH_SECONDS
            records = self.next_records(pause)
            yield from (record for record in records if record.error() is None or self.note(record))
            if not records:
                yield None

    def _read_added_partitions(self) -> None:
        with suppress(CoordinatorError):
            count = required_partition_count(self._consumer, self.topic, GROWTH_LIMIT_SECONDS)
            added = range(len(self.partitions), count)
            if added:
                self.partitions = range(count)
                self.positions |= dict.fromkeys(added, 0)
                self._consumer.incremental_assign([TopicPartition(self.topic, each, 0) for each in added])

    def next_records(self, timeout: float) -> list[Message]:
        """The next records, ends and errors; none if nothing comes within ``timeout`` seconds."""
        # One record, then what has come with it: consume() would wait for the full number of records.
        first = self._consumer.poll(timeout)
        return [] if first is None else [first, *self._consumer.consume(FETCHED_TOGETHER, 0)]

    def note(self, record: Message) -> bool:
        """Note the position after what has come; whether it is a record, and not the end of a partition.

        Raises CoordinatorNotAvailable for an error.
        """
        error = record.error()
        if error is None:
            self.positions[record.partition() or 0] = (record.offset() or 0) + 1
            return True
        if is_end(record):
            # Behind the last transaction's marker, if there is one.
            self.positions[record.partition() or 0] = record.offset() or 0
        elif is_refusal(error):
            raise NotAuthorized(not_allowed(Operation.READ, self.topic))
        elif not error.retriable():
            raise CoordinatorNotAvailable(f"topic {self.topic!r} cannot be read: {error.str()}") from KafkaException(
                error
            )
        return False
