"""Read the coordinator's journal from its first entry, or from a time, to its present end."""

from collections.abc import Iterable, Iterator

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from coordinator_logic.records import JournalEntry
from streaming.client.errors import CoordinatorNotAvailable, RequestTimedOut
from streaming.client.librdkafka import LibrdkafkaConfig, new_consumer, required_partition_count

CLIENT_ID = "group-coordinator-verify"
FETCHED_TOGETHER = 10_000

_decode = msgspec.json.Decoder(JournalEntry).decode


def journal_entries(
    config: LibrdkafkaConfig,
    topic: str,
    timeout: float,
    since: int = 0,
    client_id: str = CLIENT_ID,
    key: bytes | None = None,
) -> Iterator[JournalEntry | None]:
    """The entries of the journal; None for each record that is none. Those of a group are in order.

    ``config`` is librdkafka's, with the brokers. ``timeout`` is the longest wait for the next records, in seconds.
    Entries that were appended before ``since`` (ms since the epoch of Unix) are left out. ``client_id`` is also the
    name of a group whose coordinator librdkafka looks up: the reader needs the right to describe it. ``key``, a group
    id, leaves out all other groups.

    Raises:
        CoordinatorNotAvailable: the topic does not exist, or cannot be read.
        RequestTimedOut: no broker answers, or no further records come in time.
    """
    # A fetch at the end of a partition waits at the broker, by default 500 ms.
    settings: LibrdkafkaConfig = {
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 10,
    }
    consumer = new_consumer(str(config["bootstrap.servers"]), client_id, config, settings)
    try:
        unfinished = set(range(required_partition_count(consumer, topic, timeout)))
        consumer.assign(_beginnings(consumer, topic, unfinished, timeout, since))
        while unfinished:
            for record in _next_records(consumer, topic, timeout):
                error = record.error()
                if error is None:
                    if key is None or record.key() == key:
                        yield _entry(record)
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(record.partition() or 0)
                elif not error.retriable():
                    raise CoordinatorNotAvailable(f"topic {topic!r} cannot be read: {error.str()}") from KafkaException(
                        error
                    )
    finally:
        consumer.close()


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


def _next_records(consumer: Consumer, topic: str, timeout: float) -> list[Message]:
    # One record, then what has come with it: consume() would wait for the full number of records.
    first = consumer.poll(timeout)
    if first is None:
        raise RequestTimedOut(f"topic {topic!r} could not be read to its end: nothing came for {timeout:g} s")
    return [first, *consumer.consume(FETCHED_TOGETHER, 0)]


def _entry(record: Message) -> JournalEntry | None:
    value = record.value()
    try:
        return None if value is None else _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
