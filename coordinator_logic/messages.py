"""Requests and responses: Kafka's fields under Kafka's names, as one superset type per API.

A request type holds the fields of every version that is served; a field that a version lacks has the default
that Kafka gives it. Names are snake_case here and camelCase in JSON. Bytes are base64 in JSON. Integers are
bounded as on Kafka's wire (``int16``, ``int32``, ``int64``), so that a value no broker could carry is refused
as malformed.

Two things of the wire protocol have no counterpart here: ``throttleTimeMs`` (there are no quotas over topics)
and tagged fields.

Source: the request and response schemas of Apache Kafka 4.1 (``clients/src/main/resources/common/message``).
"""

from typing import Annotated

import msgspec

Int16 = Annotated[int, msgspec.Meta(ge=-(2**15), le=2**15 - 1)]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

NO_GENERATION = -1
NO_OFFSET = -1
NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1
AUTHORIZED_OPERATIONS_NOT_ASKED = -(2**31)


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """Base of everything that travels as JSON: immutable, camelCase, unknown fields ignored."""


# --------------------------------------------------------------------------------------------------------------
# FindCoordinator (API key 10)


class FindCoordinatorRequest(Message, frozen=True):
    """Where the coordinator of one group (``key``, v0-3) or of several (``coordinator_keys``, v4+) lives."""

    key: str = ""
    key_type: Int16 = 0
    coordinator_keys: list[str] = []


class Coordinator(Message, frozen=True):
    """One key's coordinator: ``node_id`` and ``port`` are the request topic's partition, ``host`` the topic."""

    key: str
    node_id: Int32
    host: str
    port: Int32
    error_code: Int16 = 0
    error_message: str | None = None


class FindCoordinatorResponse(Message, frozen=True):
    """v0-3 answer at the top level, v4+ in ``coordinators``, in the order of the request's keys."""

    error_code: Int16 = 0
    error_message: str | None = None
    node_id: Int32 = -1
    host: str = ""
    port: Int32 = -1
    coordinators: list[Coordinator] = []


# --------------------------------------------------------------------------------------------------------------
# JoinGroup (API key 11)


class Protocol(Message, frozen=True, array_like=False):
    """A protocol that a member can follow, with the member's metadata for it (for a consumer: a subscription)."""

    name: str
    metadata: bytes


class JoinGroupRequest(Message, frozen=True):
    """Join, or rejoin, a group. ``member_id`` is empty the first time; times are milliseconds."""

    group_id: str
    session_timeout_ms: Int32
    protocol_type: str
    protocols: list[Protocol]
    rebalance_timeout_ms: Int32 = -1
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class JoinedMember(Message, frozen=True):
    """A member as the leader is shown it: ``metadata`` is for the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinGroupResponse(Message, frozen=True):
    """``members`` is filled for the leader only."""

    error_code: Int16 = 0
    generation_id: Int32 = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinedMember] = []


# --------------------------------------------------------------------------------------------------------------
# SyncGroup (API key 14)


class MemberAssignment(Message, frozen=True):
    """What the leader assigned to one member."""

    member_id: str
    assignment: bytes


class SyncGroupRequest(Message, frozen=True):
    """Ask for this generation's assignment; the leader brings everybody's in ``assignments``."""

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[MemberAssignment] = []


class SyncGroupResponse(Message, frozen=True):
    """The caller's assignment; zero bytes mean that it has none."""

    error_code: Int16 = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


# --------------------------------------------------------------------------------------------------------------
# Heartbeat (API key 12)


class HeartbeatRequest(Message, frozen=True):
    """Keep the session alive and learn of a rebalance."""

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: str | None = None


class HeartbeatResponse(Message, frozen=True):
    """Only an error code."""

    error_code: Int16 = 0


# --------------------------------------------------------------------------------------------------------------
# LeaveGroup (API key 13)


class LeavingMember(Message, frozen=True):
    """A member to remove, by its id, or by its instance id with an empty ``member_id`` (KIP-345)."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(Message, frozen=True):
    """Leave: one ``member_id`` in v0-2, a batch of ``members`` in v3+."""

    group_id: str
    member_id: str = ""
    members: list[LeavingMember] = []


class LeftMember(Message, frozen=True):
    """What became of one entry of the batch."""

    member_id: str
    group_instance_id: str | None
    error_code: Int16


class LeaveGroupResponse(Message, frozen=True):
    """v0-2: the one member's error at the top level; v3+: one entry per member, in the request's order."""

    error_code: Int16 = 0
    members: list[LeftMember] = []


# --------------------------------------------------------------------------------------------------------------
# OffsetCommit (API key 8)


class PartitionToCommit(Message, frozen=True):
    """A partition's position. ``commit_timestamp`` (ms) exists in v1 only; -1 means none."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = NO_LEADER_EPOCH
    commit_timestamp: Int64 = NO_TIMESTAMP
    committed_metadata: str | None = None


class TopicToCommit(Message, frozen=True):
    """The partitions of one topic."""

    name: str
    partitions: list[PartitionToCommit]


class OffsetCommitRequest(Message, frozen=True):
    """Commit as a member, or anonymously (generation -1, empty member id) while the group has no members.

    ``retention_time_ms`` exists in v2-4 only; -1 means the coordinator's own retention.
    """

    group_id: str
    topics: list[TopicToCommit]
    generation_id_or_member_epoch: Int32 = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: Int64 = -1


class CommittedPartition(Message, frozen=True):
    """What became of one partition's commit."""

    partition_index: Int32
    error_code: Int16


class CommittedTopic(Message, frozen=True):
    """The partitions of one topic, in the request's order."""

    name: str
    partitions: list[CommittedPartition]


class OffsetCommitResponse(Message, frozen=True):
    """One error code per partition; an error of the whole group stands on every partition."""

    topics: list[CommittedTopic] = []


# --------------------------------------------------------------------------------------------------------------
# OffsetFetch (API key 9)


class TopicToFetch(Message, frozen=True):
    """The partitions of one topic whose committed offsets are wanted."""

    name: str
    partition_indexes: list[Int32]


class GroupToFetch(Message, frozen=True):
    """A group whose offsets are wanted (v8+); ``topics`` null means all that it has committed."""

    group_id: str
    topics: list[TopicToFetch] | None = None
    member_id: str | None = None
    member_epoch: Int32 = -1


class OffsetFetchRequest(Message, frozen=True):
    """Committed offsets of one group (``group_id`` and ``topics``, v0-7) or of several (``groups``, v8+)."""

    group_id: str = ""
    topics: list[TopicToFetch] | None = None
    groups: list[GroupToFetch] = []
    require_stable: bool = False


class FetchedPartition(Message, frozen=True):
    """A committed offset; -1 when there is none."""

    partition_index: Int32
    committed_offset: Int64 = NO_OFFSET
    committed_leader_epoch: Int32 = NO_LEADER_EPOCH
    metadata: str = ""
    error_code: Int16 = 0


class FetchedTopic(Message, frozen=True):
    """The partitions of one topic."""

    name: str
    partitions: list[FetchedPartition]


class FetchedGroup(Message, frozen=True):
    """One group's committed offsets (v8+)."""

    group_id: str
    topics: list[FetchedTopic]
    error_code: Int16 = 0


class OffsetFetchResponse(Message, frozen=True):
    """v0-7: ``topics`` and (v2+) ``error_code``; v8+: ``groups`` in the request's order."""

    error_code: Int16 = 0
    topics: list[FetchedTopic] = []
    groups: list[FetchedGroup] = []


# --------------------------------------------------------------------------------------------------------------
# DescribeGroups (API key 15)


class DescribeGroupsRequest(Message, frozen=True):
    """The groups to describe."""

    groups: list[str]
    include_authorized_operations: bool = False


class DescribedMember(Message, frozen=True):
    """A member: metadata only in a Stable group, assignment as it is stored."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


class DescribedGroup(Message, frozen=True):
    """A group as it is now; a group that does not exist is shown as Dead (v0-5) or with error 69 (v6)."""

    group_id: str
    error_code: Int16 = 0
    error_message: str | None = None
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedMember] = []
    authorized_operations: Int32 = AUTHORIZED_OPERATIONS_NOT_ASKED


class DescribeGroupsResponse(Message, frozen=True):
    """One entry per group, in the request's order."""

    groups: list[DescribedGroup] = []


# --------------------------------------------------------------------------------------------------------------
# ListGroups (API key 16)


class ListGroupsRequest(Message, frozen=True):
    """Filters: an empty list means all (states: KIP-518, v4+; types: KIP-848, v5+)."""

    states_filter: list[str] = []
    types_filter: list[str] = []


class ListedGroup(Message, frozen=True):
    """One group of the listing."""

    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


class ListGroupsResponse(Message, frozen=True):
    """All groups that pass both filters."""

    error_code: Int16 = 0
    groups: list[ListedGroup] = []


# --------------------------------------------------------------------------------------------------------------
# DeleteGroups (API key 42)


class DeleteGroupsRequest(Message, frozen=True):
    """The groups to delete. The plural of the first word is Kafka's."""

    groups_names: list[str]


class DeletedGroup(Message, frozen=True):
    """What became of one group."""

    group_id: str
    error_code: Int16


class DeleteGroupsResponse(Message, frozen=True):
    """One entry per distinct group of the request."""

    results: list[DeletedGroup] = []


# --------------------------------------------------------------------------------------------------------------
# OffsetDelete (API key 47)


class PartitionToDelete(Message, frozen=True):
    """A partition whose committed offset is to be forgotten."""

    partition_index: Int32


class TopicToDelete(Message, frozen=True):
    """The partitions of one topic."""

    name: str
    partitions: list[PartitionToDelete]


class OffsetDeleteRequest(Message, frozen=True):
    """Forget committed offsets of topics that the group is not subscribed to (KIP-496)."""

    group_id: str
    topics: list[TopicToDelete]


class DeletedPartition(Message, frozen=True):
    """What became of one partition's offset."""

    partition_index: Int32
    error_code: Int16


class DeletedTopic(Message, frozen=True):
    """The partitions of one topic, in the request's order."""

    name: str
    partitions: list[DeletedPartition]


class OffsetDeleteResponse(Message, frozen=True):
    """An error of the whole group stands at the top, and there are no topics then."""

    error_code: Int16 = 0
    topics: list[DeletedTopic] = []


# --------------------------------------------------------------------------------------------------------------
# TxnOffsetCommit (API key 28)


class TxnPartitionToCommit(Message, frozen=True):
    """A partition's position, as a part of a transaction."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = NO_LEADER_EPOCH
    committed_metadata: str | None = None


class TxnTopicToCommit(Message, frozen=True):
    """The partitions of one topic."""

    name: str
    partitions: list[TxnPartitionToCommit]


class TxnOffsetCommitRequest(Message, frozen=True):
    """Commit positions that become visible when the producer's transaction is committed (KIP-98).

    Who commits (generation, member, instance) is told from v3 on (KIP-447); before, nobody asked.
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
    """One error code per partition; an error of the whole group stands on every partition."""

    topics: list[CommittedTopic] = []


# --------------------------------------------------------------------------------------------------------------
# WriteTxnMarkers (API key 27)


class TxnMarkerTopic(Message, frozen=True):
    """Where a broker writes the marker. Here it goes to the group by which the event is keyed."""

    name: str
    partition_indexes: list[Int32]


class TxnMarker(Message, frozen=True):
    """The end of a producer's transaction: true to commit it, false to abort it."""

    producer_id: Int64
    producer_epoch: Int16
    transaction_result: bool
    topics: list[TxnMarkerTopic] = []
    coordinator_epoch: Int32 = 0


class WriteTxnMarkersRequest(Message, frozen=True):
    """Tell a group that transactions with offsets of it have ended."""

    markers: list[TxnMarker]


class TxnMarkerPartitionResult(Message, frozen=True):
    """What became of the marker in one of the partitions that it named."""

    partition_index: Int32
    error_code: Int16


class TxnMarkerTopicResult(Message, frozen=True):
    """The partitions of one topic, in the request's order."""

    name: str
    partitions: list[TxnMarkerPartitionResult]


class TxnMarkerResult(Message, frozen=True):
    """What became of one marker."""

    producer_id: Int64
    topics: list[TxnMarkerTopicResult]


class WriteTxnMarkersResponse(Message, frozen=True):
    """One entry per marker, in the request's order."""

    markers: list[TxnMarkerResult] = []


# --------------------------------------------------------------------------------------------------------------
# TopicsDeleted: what a broker's coordinator learns from the cluster's metadata, as an event


class TopicsDeletedRequest(Message, frozen=True):
    """These topics are gone; the group forgets their offsets, subscribed or not."""

    topics: list[str]


class TopicsDeletedResponse(Message, frozen=True):
    """Only an error code."""

    error_code: Int16 = 0


RequestBody = (
    FindCoordinatorRequest
    | JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | DescribeGroupsRequest
    | ListGroupsRequest
    | DeleteGroupsRequest
    | OffsetDeleteRequest
    | TxnOffsetCommitRequest
    | WriteTxnMarkersRequest
    | TopicsDeletedRequest
)
ResponseBody = (
    FindCoordinatorResponse
    | JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | DescribeGroupsResponse
    | ListGroupsResponse
    | DeleteGroupsResponse
    | OffsetDeleteResponse
    | TxnOffsetCommitResponse
    | WriteTxnMarkersResponse
    | TopicsDeletedResponse
)


# --------------------------------------------------------------------------------------------------------------
# Envelopes


LONGEST_CORRELATION_ID = 255


class RequestEnvelope(Message, frozen=True):
    """The value of a record of ``group-requests``; its key is the group id.

    ``correlation_id`` is chosen by the sender, unique over all senders (a UUID will do), and comes back in the
    response. ``reply_partition`` is the partition of ``group-responses`` that the sender reads. ``principal`` is who a
    sender that authenticates its own clients (the gateway) found the client to be: ``User:alice``; it is believed.
    """

    api: str
    version: Int16
    correlation_id: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_CORRELATION_ID)]
    reply_partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    body: msgspec.Raw
    client_id: str | None = None
    client_host: str | None = None
    principal: str | None = None


NO_BODY = msgspec.Raw(b"null")
"""The body of a response to a request that could not be understood."""


class ResponseEnvelope(Message, frozen=True):
    """The value of a record of ``group-responses``; its key is the correlation id.

    ``error_code`` is the error of the request as a whole, also where the API's body has no place for one or
    repeats it on every entry; errors of single entries are in the body only. ``body`` is null when the request
    could not be understood; ``error_message`` then says why.
    """

    api: str
    version: Int16
    correlation_id: str
    group_id: str
    error_code: Int16
    body: msgspec.Raw
    error_message: str | None = None
