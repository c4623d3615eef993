"""How far a topic goes back: the first record that each of its partitions still has."""

from collections.abc import Mapping
from typing import NamedTuple

from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.topic_consumer import TopicConsumer

CLIENT_ID = "group-coordinator-checkpoint"


class PartitionReach(NamedTuple):
    """The first offset of a partition, the offset after its last record, and the append time of the first record.

    The time is in ms since the epoch; None if the partition has no record.
    """

    first: int
    end: int
    first_time: int | None


def topic_reach(config: LibrdkafkaConfig, topic: str, timeout: float) -> dict[int, PartitionReach]:
    """How far each partition of a topic goes back. ``timeout`` is the limit of each request, in seconds.

    Raises:
        CoordinatorNotAvailable: the topic does not exist, or cannot be read.
        RequestTimedOut: no broker answers in time.
    """
    with _consumer(config, topic, timeout) as consumer:
        first, end = consumer.beginnings(consumer.partitions), consumer.ends(consumer.partitions)
        times = _append_times(consumer, first)
    return {each: PartitionReach(first[each], end[each], times.get(each)) for each in first}


def append_times(config: LibrdkafkaConfig, topic: str, offsets: Mapping[int, int], timeout: float) -> dict[int, int]:
    """The append time of the first record at or after an offset of each partition, ms since the epoch.

    A partition without such a record is left out. Raises as :func:`topic_reach`.
    """
    with _consumer(config, topic, timeout) as consumer:
        return _append_times(consumer, offsets)


def offsets_after(config: LibrdkafkaConfig, topic: str, times: Mapping[int, int], timeout: float) -> dict[int, int]:
    """The offset of the first record that was appended after a time (ms since the epoch) of each partition.

    It is that after the last record if there is none. Raises as :func:`topic_reach`.
    """
    if not times:
        return {}
    with _consumer(config, topic, timeout) as consumer:
        return consumer.offsets_at({partition: time + 1 for partition, time in times.items()})


def _consumer(config: LibrdkafkaConfig, topic: str, timeout: float) -> TopicConsumer:
    return TopicConsumer(str(config["bootstrap.servers"]), topic, CLIENT_ID, config, timeout)


def _append_times(consumer: TopicConsumer, offsets: Mapping[int, int]) -> dict[int, int]:
    times: dict[int, int] = {}
    consumer.assign(offsets)
    for record in consumer.read_to_end():
        partition = record.partition() or 0
        if partition not in times:
            times[partition] = record.timestamp()[1]
            consumer.leave(partition)
    return times
