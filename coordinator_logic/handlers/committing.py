"""What commits within a transaction and without one have in common: which partitions are taken, and what is stored."""

from collections.abc import Callable, Sequence
from typing import TypeVar

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

PartitionT = TypeVar("PartitionT", PartitionToCommit, TxnPartitionToCommit)


def leaves_nothing(topics: Sequence[TopicToCommit] | Sequence[TxnTopicToCommit]) -> bool:
    """Whether there is no partition to commit. In Kafka the coordinator is not asked then, and so nothing of the
    group is looked at: it is no sign of life."""
    return not any(topic.partitions for topic in topics)


def take(
    config: CoordinatorConfig,
    topics: Sequence[tuple[str, Sequence[PartitionT]]],
    committed: Callable[[str, PartitionT], OffsetCommitted],
) -> tuple[list[CommittedTopic], list[OffsetCommitted]]:
    """The answer for every partition, in the request's order, and what is to be stored: all but what is too large."""
    answers, accepted = [], []
    for topic, partitions in topics:
        results = []
        for partition in partitions:
            too_large = _is_too_large(partition.committed_metadata, config)
            if not too_large:
                accepted.append(committed(topic, partition))
            result = Error.OFFSET_METADATA_TOO_LARGE if too_large else Error.NONE
            results.append(CommittedPartition(partition.partition_index, result))
        answers.append(CommittedTopic(topic, results))
    return answers, accepted


def refused(topics: Sequence[TopicToCommit] | Sequence[TxnTopicToCommit], error: Error) -> list[CommittedTopic]:
    """One error for the whole request: on every partition."""
    return [
        CommittedTopic(
            topic.name, [CommittedPartition(partition.partition_index, error) for partition in topic.partitions]
        )
        for topic in topics
    ]


def stored(
    topic: str,
    partition: PartitionToCommit | TxnPartitionToCommit,
    *,
    commit_timestamp: int,
    expire_timestamp: int | None,
) -> OffsetCommitted:
    """A partition's position as it is recorded. Times are ms since the epoch."""
    epoch = partition.committed_leader_epoch
    return OffsetCommitted(
        topic,
        partition.partition_index,
        partition.committed_offset,
        None if epoch == NO_LEADER_EPOCH else epoch,
        partition.committed_metadata or "",
        commit_timestamp,
        expire_timestamp,
    )


def _is_too_large(metadata: str | None, config: CoordinatorConfig) -> bool:
    """As in Kafka the limit counts UTF-16 code units, whatever the name of its key says."""
    if metadata is None:
        return False
    length = len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le", "surrogatepass")) // 2
    return length > config.offset_metadata_max_bytes
