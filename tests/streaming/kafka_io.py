"""The topics as any Kafka client sees them: records in, records out, nothing of ours in between."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition

from tests.streaming.client_support import wait_until

ANSWER_LIMIT_SECONDS = 60.0


class Record(NamedTuple):
    """A record that was read, its value parsed as JSON (None for a tombstone)."""

    partition: int
    key: bytes | None
    raw: bytes | None

    @property
    def value(self) -> Any:
        return None if self.raw is None else json.loads(self.raw)


class TopicReader:
    """All records of one topic from its beginning, gathered as they come."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.topic = topic
        self.records: list[Record] = []
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap_servers, "group.id": "unused", "enable.auto.commit": False}
        )
        partitions = self._consumer.list_topics(topic, timeout=ANSWER_LIMIT_SECONDS).topics[topic].partitions
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])

    def close(self) -> None:
        self._consumer.close()

    def poll(self) -> list[Record]:
        """Take what has come; all records so far."""
        for message in self._consumer.consume(1000, 0.05):
            assert not message.error()
            self.records.append(_record(message))
        return self.records

    def to_the_end(self) -> list[Record]:
        """Read all that is there now."""
        ends = [
            self._consumer.get_watermark_offsets(partition, ANSWER_LIMIT_SECONDS)[1]
            for partition in self._consumer.assignment()
        ]
        return self.until(lambda records: len(records) >= sum(ends), "all records")

    def until(self, holds: Callable[[list[Record]], bool], what: str) -> list[Record]:
        """Read until the records are as wanted."""
        wait_until(lambda: holds(self.poll()), f"{self.topic}: {what}", ANSWER_LIMIT_SECONDS)
        return self.records

    def first(self, matches: Callable[[Record], bool], what: str) -> Record:
        """Read until there is a record like this; the first one."""
        self.until(lambda records: any(map(matches, records)), what)
        return next(filter(matches, self.records))


def _record(message: Message) -> Record:
    partition = message.partition()
    assert partition is not None
    return Record(partition, _bytes(message.key()), _bytes(message.value()))


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


@contextmanager
def reading(bootstrap_servers: str, topic: str) -> Iterator[TopicReader]:
    reader = TopicReader(bootstrap_servers, topic)
    try:
        yield reader
    finally:
        reader.close()


def append(
    bootstrap_servers: str,
    topic: str,
    *records: tuple[bytes | None, bytes | None],
    partition: int = 0,
) -> None:
    """Append records (key, value) to one partition, in order."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "message.max.bytes": 2_000_000})
    failures: list[object] = []
    for key, value in records:
        producer.produce(topic, key=key, value=value, partition=partition, on_delivery=lambda e, _: failures.append(e))
    assert producer.flush(ANSWER_LIMIT_SECONDS) == 0
    assert [failure for failure in failures if failure is not None] == []


def correlation_id() -> str:
    return uuid.uuid4().hex


def envelope(api: str, version: int, body: object, **fields: object) -> dict[str, Any]:
    """A request envelope; ``fields`` replace or add."""
    return {
        "api": api,
        "version": version,
        "correlationId": correlation_id(),
        "clientId": "test",
        "clientHost": "/127.0.0.1",
        "replyPartition": 0,
        "body": body,
        **fields,
    }


def commit(group_id: str, offset: int, **fields: object) -> dict[str, Any]:
    """An OffsetCommit of somebody who is no member, for partition 0 of ``payments``."""
    partition = {"partitionIndex": 0, "committedOffset": offset}
    body = {
        "groupId": group_id,
        "generationIdOrMemberEpoch": -1,
        "memberId": "",
        "topics": [{"name": "payments", "partitions": [partition]}],
    }
    return envelope("OffsetCommit", 5, body, **fields)


def dumped(request: object) -> bytes:
    return json.dumps(request).encode()
