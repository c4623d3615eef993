"""The messages of offsets that are committed in a transaction: TxnOffsetCommit and WriteTxnMarkers."""

from coordinator_logic.messages.base import (
    NO_GENERATION,
    NO_LEADER_EPOCH,
    Int16,
    Int32,
    Int64,
    Message,
    OptionalTopicId,
)
from coordinator_logic.messages.offsets import CommittedTopic

# ---- TxnOffsetCommit (API key 28) ----------------------------------------------------------------------------------


class TxnPartitionToCommit(Message, frozen=True):
    """The position to commit for a partition in a transaction."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = NO_LEADER_EPOCH
    committed_metadata: str | None = None


class TxnTopicToCommit(Message, frozen=True, omit_defaults=True):
    """The partitions of one topic. ``topic_id`` is stored with the offsets; empty if it is not known."""

    name: str
    partitions: list[TxnPartitionToCommit]
    topic_id: OptionalTopicId = ""


class TxnOffsetCommitRequest(Message, frozen=True):
    """Commit offsets in a producer's transaction; they take effect when the transaction is committed (KIP-98).

    Generation, member id and instance id are read and checked in v3+ only (KIP-447).
    """

    transactional_id: str
    group_id: str
    producer_id: Int64
    producer_epoch: Int16
    topics: list[TxnTopicToCommit]
    generation_id: Int32 = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


class TxnOffsetCommitResponse(Message, frozen=True):
    """One error code for each partition; an error of the whole request is repeated on every partition."""

    topics: list[CommittedTopic] = []


# ---- WriteTxnMarkers (API key 27) ----------------------------------------------------------------------------------


class TxnMarkerTopic(Message, frozen=True):
    """Partitions of the marker in Kafka. Here the marker applies to the group that is the record's key."""

    name: str
    partition_indexes: list[Int32]


class TxnMarker(Message, frozen=True):
    """The end of a producer's transaction: committed if ``transaction_result`` is true, else aborted."""

    producer_id: Int64
    producer_epoch: Int16
    transaction_result: bool
    topics: list[TxnMarkerTopic] = []
    coordinator_epoch: Int32 = 0


class WriteTxnMarkersRequest(Message, frozen=True):
    """End transactions that have pending offsets in the group."""

    markers: list[TxnMarker]


class TxnMarkerPartitionResult(Message, frozen=True):
    """The result of a marker for one partition."""

    partition_index: Int32
    error_code: Int16


class TxnMarkerTopicResult(Message, frozen=True):
    """The results for the partitions of one topic, in the order of the request."""

    name: str
    partitions: list[TxnMarkerPartitionResult]


class TxnMarkerResult(Message, frozen=True):
    """The result of one marker."""

    producer_id: Int64
    topics: list[TxnMarkerTopicResult]


class WriteTxnMarkersResponse(Message, frozen=True):
    """One entry for each marker, in the order of the request."""

    markers: list[TxnMarkerResult] = []
