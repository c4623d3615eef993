"""OffsetCommit and OffsetFetch as of v10, which name topics by their ids; events of the coordinator name them by name.

Ids are in Kafka's text form, see :mod:`streaming.gateway.wire.topic_ids`.
"""

from coordinator_logic.messages import (
    CommittedPartition,
    FetchedPartition,
    Message,
    PartitionToCommit,
)

__all__ = [
    "CommittedTopicId",
    "FetchedGroupOfIds",
    "FetchedTopicId",
    "GroupOfIdsToFetch",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "TopicIdToCommit",
    "TopicIdToFetch",
]

NO_GENERATION = -1


class TopicIdToCommit(Message, frozen=True):
    """The partitions of one topic."""

    topic_id: str
    partitions: list[PartitionToCommit]


class OffsetCommitRequest(Message, frozen=True):
    """As the message of earlier versions, but for the topics."""

    group_id: str
    topics: list[TopicIdToCommit]
    generation_id_or_member_epoch: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


class CommittedTopicId(Message, frozen=True):
    """The results for the partitions of one topic."""

    topic_id: str
    partitions: list[CommittedPartition]


class OffsetCommitResponse(Message, frozen=True):
    """One error code for each partition."""

    topics: list[CommittedTopicId]


class TopicIdToFetch(Message, frozen=True):
    """The partitions of one topic to fetch."""

    topic_id: str
    partition_indexes: list[int]


class GroupOfIdsToFetch(Message, frozen=True):
    """A group to fetch. If ``topics`` is null, all committed offsets are fetched."""

    group_id: str
    topics: list[TopicIdToFetch] | None = None
    member_id: str | None = None
    member_epoch: int = -1


class OffsetFetchRequest(Message, frozen=True):
    """As the message of earlier versions, but for the topics."""

    groups: list[GroupOfIdsToFetch]
    require_stable: bool = False


class FetchedTopicId(Message, frozen=True):
    """The committed offsets of one topic."""

    topic_id: str
    partitions: list[FetchedPartition]


class FetchedGroupOfIds(Message, frozen=True):
    """The committed offsets of one group."""

    group_id: str
    topics: list[FetchedTopicId]
    error_code: int = 0


class OffsetFetchResponse(Message, frozen=True):
    """One entry for each group, in the order of the request."""

    groups: list[FetchedGroupOfIds]
