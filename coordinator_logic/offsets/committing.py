"""The shared part of OffsetCommit and TxnOffsetCommit: validate partitions, and build records and error responses."""

from collections.abc import Callable, Sequence
from typing import Any

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    NO_LEADER_EPOCH,
    CommittedPartition,
    CommittedTopic,
    PartitionToCommit,
    TopicToCommit,
    TxnPartitionToCommit,
    TxnTopicToCommit,
)
from coordinator_logic.records import OffsetCommitted


def has_no_partitions(topics: Sequence[TopicToCommit] | Sequence[TxnTopicToCommit]) -> bool:
    """Whether the request names no partition.

    A broker answers such a request without its coordinator: no check is made, and no session is renewed.
    """
    return not any(topic.partitions for topic in topics)


def accept_partitions(
    config: CoordinatorConfig,
    topics: Sequence[TopicToCommit] | Sequence[TxnTopicToCommit],
    to_record: Callable[[Any, Any], OffsetCommitted],
) -> tuple[list[CommittedTopic], list[OffsetCommitted]]:
    """Accept every partition whose metadata is not too large.

    ``to_record`` is given a topic and one of its partitions. Returns the result of each partition, in the request's
    order, and the records of the accepted ones.
    """
    answers, accepted = [], []
    for topic in topics:
        results = []
        for partition in topic.partitions:
            too_large = is_metadata_too_large(partition.committed_metadata, config)
            if not too_large:
                accepted.append(to_record(topic, partition))
            result = Error.OFFSET_METADATA_TOO_LARGE if too_large else Error.NONE
            results.append(CommittedPartition(partition.partition_index, result))
        answers.append(CommittedTopic(topic.name, results, topic.topic_id))
    return answers, accepted


def error_on_every_partition(
    topics: Sequence[TopicToCommit] | Sequence[TxnTopicToCommit], error: Error
) -> list[CommittedTopic]:
    """Report an error of the whole request: the response has no other place for it than the partitions."""
    return [
        CommittedTopic(
            topic.name,
            [CommittedPartition(partition.partition_index, error) for partition in topic.partitions],
            topic.topic_id,
        )
        for topic in topics
    ]


def offset_record(
    topic: TopicToCommit | TxnTopicToCommit,
    partition: PartitionToCommit | TxnPartitionToCommit,
    *,
    commit_timestamp: int,
    expire_timestamp: int | None,
) -> OffsetCommitted:
    """The record of one committed position. Times are in milliseconds since the epoch."""
    epoch = partition.committed_leader_epoch
    return OffsetCommitted(
        topic.name,
        partition.partition_index,
        partition.committed_offset,
        None if epoch == NO_LEADER_EPOCH else epoch,
        partition.committed_metadata or "",
        commit_timestamp,
        expire_timestamp,
        topic.topic_id,
    )


def is_metadata_too_large(metadata: str | None, config: CoordinatorConfig) -> bool:
    """Whether an offset's metadata is too long: in UTF-16 code units, as in Kafka, although the key says bytes."""
    if metadata is None:
        return False
    length = len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le", "surrogatepass")) // 2
    return length > config.offset_metadata_max_bytes
