"""How far a topic goes back: the first record that each of its partitions still has."""

from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streaming.client.errors import CoordinatorNotAvailable, RequestTimedOut
from streaming.client.librdkafka import (
    LibrdkafkaConfig,
    beginning_offset,
    end_offset,
    new_consumer,
    required_partition_count,
)

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
    consumer = new_consumer(str(config["bootstrap.servers"]), CLIENT_ID, config, {})
    try:
        partitions = range(required_partition_count(consumer, topic, timeout))
        first = {partition: beginning_offset(consumer, topic, partition, timeout) for partition in partitions}
        end = {partition: end_offset(consumer, topic, partition, timeout) for partition in partitions}
    finally:
        consumer.close()
    times = append_times(config, topic, first, timeout)
    return {each: PartitionReach(first[each], end[each], times.get(each)) for each in partitions}


def append_times(config: LibrdkafkaConfig, topic: str, offsets: Mapping[int, int], timeout: float) -> dict[int, int]:
    """The append time of the first record at or after an offset of each partition, ms since the epoch.

    A partition without such a record is left out. Raises as :func:`topic_reach`.
    """
    settings: LibrdkafkaConfig = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
    consumer = new_consumer(str(config["bootstrap.servers"]), CLIENT_ID, config, settings)
    times: dict[int, int] = {}
    unfinished = set(offsets)
    try:
        consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])
        while unfinished:
            record = consumer.poll(timeout)
            if record is None:
                raise RequestTimedOut(f"topic {topic!r} could not be read: nothing came for {timeout:g} s")
            partition, error = record.partition() or 0, record.error()
            if error is None:
                if partition in unfinished:
                    times[partition] = record.timestamp()[1]
            elif error.code() != KafkaError._PARTITION_EOF:
                if error.retriable():
                    continue
                raise CoordinatorNotAvailable(f"topic {topic!r} cannot be read: {error.str()}") from KafkaException(
                    error
                )
            if partition in unfinished:
                unfinished.discard(partition)
                consumer.pause([TopicPartition(topic, partition)])
    finally:
        consumer.close()
    return times


def offsets_after(config: LibrdkafkaConfig, topic: str, times: Mapping[int, int], timeout: float) -> dict[int, int]:
    """The offset of the first record that was appended after a time (ms since the epoch) of each partition.

    It is that after the last record if there is none. Raises as :func:`topic_reach`.
    """
    if not times:
        return {}
    consumer = new_consumer(str(config["bootstrap.servers"]), CLIENT_ID, config, {})
    try:
        asked = [TopicPartition(topic, partition, time + 1) for partition, time in times.items()]
        found = {each.partition: each.offset for each in consumer.offsets_for_times(asked, timeout=timeout)}
        ends = {partition: end_offset(consumer, topic, partition, timeout) for partition in times}
    except KafkaException as error:
        raise RequestTimedOut(f"no broker reported offsets of topic {topic!r}: {error.args[0].str()}") from error
    finally:
        consumer.close()
    return {partition: offset if offset >= 0 else ends[partition] for partition, offset in found.items()}
