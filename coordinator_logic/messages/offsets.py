"""The messages of committed offsets: OffsetCommit, OffsetFetch, OffsetDelete and TopicsDeleted."""

from coordinator_logic.messages.base import (
    NO_GENERATION,
    NO_LEADER_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP,
    Int16,
    Int32,
    Int64,
    Message,
    OptionalTopicId,
    TopicId,
)

# ---- OffsetCommit (API key 8) --------------------------------------------------------------------------------------


class PartitionToCommit(Message, frozen=True):
    """The position to commit for a partition. ``commit_timestamp`` is read in v1 only."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = NO_LEADER_EPOCH
    commit_timestamp: Int64 = NO_TIMESTAMP
    committed_metadata: str | None = None


class TopicToCommit(Message, frozen=True, omit_defaults=True):
    """The partitions of one topic. ``topic_id`` is stored with the offsets; empty if it is not known."""

    name: str
    partitions: list[PartitionToCommit]
    topic_id: OptionalTopicId = ""


class OffsetCommitRequest(Message, frozen=True):
    """Commit offsets, as a member or, while the group is Empty, without one (generation -1, empty member id).

    ``retention_time_ms`` is read in v2-4 only; -1 selects the coordinator's ``offsets.retention.minutes``.
    """

    group_id: str
    topics: list[TopicToCommit]
    generation_id_or_member_epoch: Int32 = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: Int64 = -1


class CommittedPartition(Message, frozen=True):
    """The result of the commit for one partition."""

    partition_index: Int32
    error_code: Int16


class CommittedTopic(Message, frozen=True, omit_defaults=True):
    """The results for the partitions of one topic, in the order of the request; the id is the request's."""

    name: str
    partitions: list[CommittedPartition]
    topic_id: OptionalTopicId = ""


class OffsetCommitResponse(Message, frozen=True):
    """One error code for each partition; an error of the whole request is repeated on every partition."""

    topics: list[CommittedTopic] = []


# ---- OffsetFetch (API key 9) ---------------------------------------------------------------------------------------


class TopicToFetch(Message, frozen=True, omit_defaults=True):
    """The partitions of one topic to fetch.

    With a ``topic_id``, offsets that were committed for a topic with another id are not there.
    """

    name: str
    partition_indexes: list[Int32]
    topic_id: OptionalTopicId = ""


class GroupToFetch(Message, frozen=True):
    """A group to fetch (v8+). If ``topics`` is null, all committed offsets are fetched."""

    group_id: str
    topics: list[TopicToFetch] | None = None
    member_id: str | None = None
    member_epoch: Int32 = -1


class OffsetFetchRequest(Message, frozen=True):
    """Fetch the committed offsets of one group (``group_id``, ``topics``, v0-7) or of several (``groups``, v8+)."""

    group_id: str = ""
    topics: list[TopicToFetch] | None = None
    groups: list[GroupToFetch] = []
    require_stable: bool = False


class FetchedPartition(Message, frozen=True):
    """The committed offset of a partition; -1 if there is none."""

    partition_index: Int32
    committed_offset: Int64 = NO_OFFSET
    committed_leader_epoch: Int32 = NO_LEADER_EPOCH
    metadata: str = ""
    error_code: Int16 = 0


class FetchedTopic(Message, frozen=True, omit_defaults=True):
    """The committed offsets of one topic.

    The id is the request's. If all offsets were requested, it is the one that is stored with these offsets, and a name
    is listed once for each id: one topic can have been deleted and another one created under its name.
    """

    name: str
    partitions: list[FetchedPartition]
    topic_id: OptionalTopicId = ""


class FetchedGroup(Message, frozen=True):
    """The committed offsets of one group (v8+)."""

    group_id: str
    topics: list[FetchedTopic]
    error_code: Int16 = 0


class OffsetFetchResponse(Message, frozen=True):
    """The offsets: ``topics`` and, from v2, ``error_code`` in v0-7; ``groups``, in the order of the request, in v8+."""

    error_code: Int16 = 0
    topics: list[FetchedTopic] = []
    groups: list[FetchedGroup] = []


# ---- OffsetDelete (API key 47) -------------------------------------------------------------------------------------


class PartitionToDelete(Message, frozen=True):
    """A partition whose committed offset is to be deleted."""

    partition_index: Int32


class TopicToDelete(Message, frozen=True):
    """The partitions of one topic."""

    name: str
    partitions: list[PartitionToDelete]


class OffsetDeleteRequest(Message, frozen=True):
    """Delete committed offsets of topics that the group is not subscribed to (KIP-496)."""

    group_id: str
    topics: list[TopicToDelete]


class DeletedPartition(Message, frozen=True):
    """The result of the deletion for one partition."""

    partition_index: Int32
    error_code: Int16


class DeletedTopic(Message, frozen=True):
    """The results for the partitions of one topic, in the order of the request."""

    name: str
    partitions: list[DeletedPartition]


class OffsetDeleteResponse(Message, frozen=True):
    """The results. If the request as a whole fails, ``error_code`` is set and ``topics`` is empty."""

    error_code: Int16 = 0
    topics: list[DeletedTopic] = []


# ---- TopicsDeleted (no API of Kafka: a broker's coordinator reads the cluster's metadata instead) ------------------


class TopicsDeletedRequest(Message, frozen=True):
    """Report deleted topics. The group deletes their offsets, even if it is subscribed to them.

    ``topic_ids`` has the ids of the deleted topics, in Kafka's text form, by the names in ``topics``: a topic that
    exists again under one of the names is another topic. For a name without ids, every topic of the name was deleted.
    """

    topics: list[str]
    topic_ids: dict[str, list[TopicId]] = {}


class TopicsDeletedResponse(Message, frozen=True):
    """The result."""

    error_code: Int16 = 0
