"""Read the coordinator's journal from its first entry, or from a time, to its present end."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Self

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from coordinator_logic.records import JournalEntry
from streaming.client.errors import CoordinatorError, CoordinatorNotAvailable, RequestTimedOut
from streaming.client.librdkafka import (
    LibrdkafkaConfig,
    beginning_offset,
    end_offset,
    new_consumer,
    required_partition_count,
)

CLIENT_ID = "group-coordinator-verify"
FETCHED_TOGETHER = 10_000

# A fetch at the end of a partition waits at the broker, by default 500 ms. A fetch has 1 MiB by default.
SETTINGS: LibrdkafkaConfig = {
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 10,
    "fetch.message.max.bytes": 8 * 1024 * 1024,
}

_decode = msgspec.json.Decoder(JournalEntry).decode


class JournalPlace(NamedTuple):
    """The place of a record in the journal."""

    partition: int
    offset: int


def journal_entries(
    config: LibrdkafkaConfig,
    topic: str,
    timeout: float,
    since: int = 0,
    client_id: str = CLIENT_ID,
) -> Iterator[JournalEntry | None]:
    """The entries of the whole journal, read once; arguments and errors as of :class:`JournalReader`."""
    with JournalReader(config, topic, timeout, client_id) as reader:
        yield from reader.entries(since=since)


class JournalReader:
    """Reads the journal, until :meth:`close` or the end of a ``with`` block. The entries of a group come in order.

    ``config`` is librdkafka's, with the brokers. ``timeout`` is the longest wait for the next records, in seconds.
    ``client_id`` is also the name of a group whose coordinator librdkafka looks up: the reader needs the right to
    describe it. ``decode`` makes an entry of a record's value, and raises msgspec's DecodeError if it is none.

    Raises:
        CoordinatorNotAvailable: the topic does not exist, or cannot be read.
        RequestTimedOut: no broker answers, or no further records come in time.
    """

    def __init__(
        self,
        config: LibrdkafkaConfig,
        topic: str,
        timeout: float,
        client_id: str = CLIENT_ID,
        decode: Callable[[bytes], JournalEntry] = _decode,
    ) -> None:
        self._topic = topic
        self.decode = decode
        self._timeout = timeout
        self.place = JournalPlace(0, -1)
        """That of the entry that was yielded last."""
        self._consumer = new_consumer(str(config["bootstrap.servers"]), client_id, config, SETTINGS)
        try:
            self.partitions = frozenset(range(required_partition_count(self._consumer, topic, timeout)))
        except CoordinatorError:
            self._consumer.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """The offset of the next record of each of these partitions."""
        return {one: end_offset(self._consumer, self._topic, one, self._timeout) for one in partitions}

    def count(self, partitions: Iterable[int]) -> int:
        """How many records these partitions hold now."""
        begins = (beginning_offset(self._consumer, self._topic, one, self._timeout) for one in partitions)
        return sum(self.ends(partitions).values()) - sum(begins)

    def entries(
        self,
        partitions: Iterable[int] | None = None,
        since: int = 0,
        key: bytes | None = None,
        on_read: Callable[[int], object] = lambda _count: None,
    ) -> Iterator[JournalEntry | None]:
        """The entries of partitions, by default of all, up to their present end; None for each record that is none.

        Entries that were appended before ``since`` (ms since the epoch of Unix) are left out. ``key``, a group id,
        leaves out all other groups. ``on_read`` is called with the number of records that were read since it was called
        last. :meth:`further` goes on from there.
        """
        unfinished = set(self.partitions if partitions is None else partitions)
        self._consumer.assign(_beginnings(self._consumer, self._topic, unfinished, self._timeout, since))
        while unfinished:
            records = next_records(self._consumer, self._timeout)
            if not records:
                message = f"topic {self._topic!r} could not be read to its end: nothing came for {self._timeout:g} s"
                raise RequestTimedOut(message)
            on_read(len(records))
            for record in records:
                if record.error() is None:
                    if key is None or record.key() == key:
                        yield self._entry(record)
                elif self._is_end(record):
                    unfinished.discard(record.partition() or 0)

    def further(self, key: bytes | None = None, pause: float = 0.2) -> Iterator[JournalEntry | None]:
        """Entries as they come, without an end; None whenever no record has come for ``pause`` seconds."""
        while True:
            records = next_records(self._consumer, pause)
            for record in records:
                if record.error() is not None:
                    self._is_end(record)
                elif (key is None or record.key() == key) and (entry := self._entry(record)) is not None:
                    yield entry
            if not records:
                yield None

    def _entry(self, record: Message) -> JournalEntry | None:
        value = record.value()
        self.place = JournalPlace(record.partition() or 0, record.offset() or 0)
        try:
            return None if value is None else self.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def _is_end(self, record: Message) -> bool:
        """Whether an error is the end of a partition. Raises CoordinatorNotAvailable for one that will not pass."""
        error = record.error()
        assert error is not None
        if error.code() != KafkaError._PARTITION_EOF and not error.retriable():
            raise CoordinatorNotAvailable(f"topic {self._topic!r} cannot be read: {error.str()}") from KafkaException(
                error
            )
        return error.code() == KafkaError._PARTITION_EOF


def _beginnings(
    consumer: Consumer, topic: str, partitions: Iterable[int], timeout: float, since: int
) -> list[TopicPartition]:
    if since <= 0:
        return [TopicPartition(topic, partition, 0) for partition in partitions]
    try:
        return consumer.offsets_for_times(
            [TopicPartition(topic, partition, since) for partition in partitions], timeout
        )
    except KafkaException as error:
        raise CoordinatorNotAvailable(f"topic {topic!r} cannot be read: {error}") from error


def next_records(consumer: Consumer, timeout: float) -> list[Message]:
    """The next records, or errors; none if nothing comes within ``timeout`` seconds."""
    # One record, then what has come with it: consume() would wait for the full number of records.
    first = consumer.poll(timeout)
    return [] if first is None else [first, *consumer.consume(FETCHED_TOGETHER, 0)]
