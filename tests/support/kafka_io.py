"""Topics as any Kafka client sees them: appends and reads records with confluent-kafka, without code of the project."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition

from tests.support.waiting import LIMIT_SECONDS, wait_until

_AT_ONCE = {"linger.ms": 0, "message.max.bytes": 2_000_000}


class Record(NamedTuple):
    """A record of a topic. ``timestamp`` is in Unix milliseconds."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    raw: bytes | None

    @property
    def value(self) -> Any:
        """The value parsed as JSON; None for a tombstone."""
        return None if self.raw is None else json.loads(self.raw)


class TopicReader:
    """Reads one topic from its beginning and keeps all records in ``records``."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.topic = topic
        self.records: list[Record] = []
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap_servers, "group.id": "unused", "enable.auto.commit": False}
        )
        partitions = self._consumer.list_topics(topic, timeout=LIMIT_SECONDS).topics[topic].partitions
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])

    def close(self) -> None:
        self._consumer.close()

    def poll(self) -> list[Record]:
        """Fetch what has arrived; returns all records so far."""
        for message in self._consumer.consume(1000, 0.05):
            assert not message.error(), message.error()
            self.records.append(_record(message))
        return self.records

    def to_the_end(self) -> list[Record]:
        """Read up to the present end of every partition; returns all records so far."""
        ends = [
            self._consumer.get_watermark_offsets(partition, LIMIT_SECONDS)[1]
            for partition in self._consumer.assignment()
        ]
        return self.until(lambda records: len(records) >= sum(ends), "all records")

    def until(self, holds: Callable[[list[Record]], bool], what: str) -> list[Record]:
        """Read until a condition holds for the records; ``what`` describes it in a failure."""
        wait_until(lambda: holds(self.poll()), f"{self.topic}: {what}")
        return self.records

    def first(self, matches: Callable[[Record], bool], what: str) -> Record:
        """The first record that matches; reads until there is one."""
        self.until(lambda records: any(map(matches, records)), what)
        return next(filter(matches, self.records))


def _record(message: Message) -> Record:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return Record(partition, offset, message.timestamp()[1], _bytes(message.key()), _bytes(message.value()))


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


@contextmanager
def reading(bootstrap_servers: str, topic: str) -> Iterator[TopicReader]:
    """A :class:`TopicReader` that is closed at the end."""
    reader = TopicReader(bootstrap_servers, topic)
    try:
        yield reader
    finally:
        reader.close()


def consume_all(bootstrap_servers: str, topic: str, count: int, **config: object) -> list[bytes]:
    """The values of the first ``count`` records of partition 0, read without a group."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "unused", "enable.auto.commit": False, **config}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages: list[Message] = []
        while len(messages) < count:
            batch = consumer.consume(count - len(messages), LIMIT_SECONDS)
            assert batch, f"only {len(messages)} of {count} records came"
            messages += batch
        assert not any(message.error() for message in messages)
        return [message.value() or b"" for message in messages]
    finally:
        consumer.close()


def append(
    bootstrap_servers: str,
    topic: str,
    *records: tuple[bytes | None, bytes | None],
    partition: int = 0,
    **config: object,
) -> None:
    """Append records (key, value) to one partition, in order, and wait until all are delivered.

    ``config`` is added to the producer's, with ``_`` for ``.`` in its keys.
    """
    settings = _AT_ONCE | {name.replace("_", "."): value for name, value in config.items()}
    _append(bootstrap_servers, topic, [(partition, key, value) for key, value in records], settings)


def produce(bootstrap_servers: str, topic: str, values: Mapping[int, Iterable[bytes]]) -> None:
    """Append values to partitions and wait until all are delivered; the key of each is ``key of <value>``."""
    records = [(partition, f"key of {value!r}".encode(), value) for partition, some in values.items() for value in some]
    _append(bootstrap_servers, topic, records, _AT_ONCE)


def produce_all(bootstrap_servers: str, topic: str, values: Sequence[bytes], **config: object) -> None:
    """Append values without keys to partition 0 and wait until all are delivered; ``config`` is the producer's."""
    _append(bootstrap_servers, topic, [(0, None, value) for value in values], config)


def _append(
    bootstrap_servers: str,
    topic: str,
    records: Iterable[tuple[int, bytes | None, bytes | None]],
    config: Mapping[str, object],
) -> None:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, **config})
    for partition, key, value in records:
        producer.produce(
            topic, key=key, value=value, partition=partition, on_delivery=lambda error, _: failures.append(error)
        )
    assert producer.flush(LIMIT_SECONDS) == 0
    assert [failure for failure in failures if failure is not None] == []
