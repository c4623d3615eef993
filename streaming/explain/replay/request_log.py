"""Reads the requests of one group from the requests topic."""

import msgspec
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from streaming.client.errors import CoordinatorNotAvailable, RequestTimedOut
from streaming.client.librdkafka import LibrdkafkaConfig, new_consumer, required_partition_count
from streaming.explain.replay.case import RecordedRequest

__all__ = ["requests_of"]

CLIENT_ID = "group-coordinator-replay"
SETTINGS: LibrdkafkaConfig = {"enable.partition.eof": True, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 10}


def requests_of(
    bootstrap_servers: str, config: LibrdkafkaConfig, topic: str, group_id: str, timeout: float
) -> list[RecordedRequest]:
    """The requests of a group that the topic still holds.

    All partitions are read: a producer other than the clients and the gateway may use any. ``timeout`` is the longest
    wait for the next record, in seconds. Records that are no JSON are left out; the coordinator rejects them.

    Raises:
        CoordinatorNotAvailable: the topic does not exist, or cannot be read.
        RequestTimedOut: no broker answers, or no further records come in time.
    """
    consumer = new_consumer(bootstrap_servers, CLIENT_ID, config, SETTINGS)
    try:
        partitions = required_partition_count(consumer, topic, timeout)
        return _read(consumer, topic, partitions, group_id.encode(), timeout)
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, partitions: int, key: bytes, timeout: float) -> list[RecordedRequest]:
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    unfinished = set(range(partitions))
    requests = []
    while unfinished:
        record = consumer.poll(timeout)
        if record is None:
            raise RequestTimedOut(f"topic {topic!r} could not be read to its end: nothing came for {timeout:g} s")
        error = record.error()
        if error is None:
            if record.key() == key:
                requests += _recorded(record)
        elif error.code() == KafkaError._PARTITION_EOF:
            unfinished.discard(record.partition() or 0)
        elif not error.retriable():
            raise CoordinatorNotAvailable(f"topic {topic!r} cannot be read: {error.str()}")
    return requests


def _recorded(record: Message) -> list[RecordedRequest]:
    value = record.value()
    try:
        raw = msgspec.json.decode(value or b"", type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    # The message's buffer ends with the message.
    return [RecordedRequest(record.timestamp()[1], record.partition() or 0, record.offset() or 0, raw.copy())]
