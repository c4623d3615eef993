"""The messages of the coordinator: requests, responses and their envelopes. Imports nothing else of the project.

Each API has one request type and one response type, with Kafka's fields under Kafka's names. A type has the fields
of every supported version; a field that a version lacks has the default that Kafka gives it. Names are snake_case
here and camelCase in JSON, and bytes are base64 in JSON. Integers have the bounds of Kafka's wire types (``int16``,
``int32``, ``int64``); a value outside these bounds makes a request malformed.

Two parts of the wire protocol have no counterpart here: ``throttleTimeMs`` (topics have no quotas) and tagged
fields.

Source: the request and response schemas of Apache Kafka 4.3 (``clients/src/main/resources/common/message``).
"""

from coordinator_logic.messages.base import (
    AUTHORIZED_OPERATIONS_NOT_ASKED,
    NO_GENERATION,
    NO_LEADER_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP,
    Int16,
    Int32,
    Int64,
    Message,
)
from coordinator_logic.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedTopicPartitions,
    SetGroupConfigRequest,
    SetGroupConfigResponse,
    TopicDescription,
    TopicIdPartitions,
    TopicsDescribedRequest,
    TopicsDescribedResponse,
)
from coordinator_logic.messages.envelopes import LONGEST_CORRELATION_ID, NO_BODY, RequestEnvelope, ResponseEnvelope
from coordinator_logic.messages.groups import (
    Coordinator,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from coordinator_logic.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    MemberAssignment,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_logic.messages.offset_resets import (
    PartitionToReset,
    ResetOffsetsRequest,
    ResetOffsetsResponse,
    ResetPartition,
    ResetTopic,
    TopicToReset,
)
from coordinator_logic.messages.offsets import (
    CommittedPartition,
    CommittedTopic,
    DeletedPartition,
    DeletedTopic,
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    GroupToFetch,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToCommit,
    PartitionToDelete,
    TopicsDeletedRequest,
    TopicsDeletedResponse,
    TopicToCommit,
    TopicToDelete,
    TopicToFetch,
)
from coordinator_logic.messages.quarantine import (
    DropQuarantinedGroupRequest,
    DropQuarantinedGroupResponse,
    ReadQuarantinedGroupRequest,
    ReadQuarantinedGroupResponse,
)
from coordinator_logic.messages.transactions import (
    TxnMarker,
    TxnMarkerPartitionResult,
    TxnMarkerResult,
    TxnMarkerTopic,
    TxnMarkerTopicResult,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnPartitionToCommit,
    TxnTopicToCommit,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

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
    | ConsumerGroupHeartbeatRequest
    | ConsumerGroupDescribeRequest
    | SetGroupConfigRequest
    | TopicsDescribedRequest
    | ResetOffsetsRequest
    | ReadQuarantinedGroupRequest
    | DropQuarantinedGroupRequest
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
    | ConsumerGroupHeartbeatResponse
    | ConsumerGroupDescribeResponse
    | SetGroupConfigResponse
    | TopicsDescribedResponse
    | ResetOffsetsResponse
    | ReadQuarantinedGroupResponse
    | DropQuarantinedGroupResponse
)

__all__ = [
    "AUTHORIZED_OPERATIONS_NOT_ASKED",
    "LONGEST_CORRELATION_ID",
    "NO_BODY",
    "NO_GENERATION",
    "NO_LEADER_EPOCH",
    "NO_OFFSET",
    "NO_TIMESTAMP",
    "CommittedPartition",
    "CommittedTopic",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupHeartbeatAssignment",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "Coordinator",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeletedGroup",
    "DeletedPartition",
    "DeletedTopic",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribedAssignment",
    "DescribedConsumer",
    "DescribedConsumerGroup",
    "DescribedGroup",
    "DescribedMember",
    "DescribedTopicPartitions",
    "DropQuarantinedGroupRequest",
    "DropQuarantinedGroupResponse",
    "FetchedGroup",
    "FetchedPartition",
    "FetchedTopic",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "GroupToFetch",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "Int16",
    "Int32",
    "Int64",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "JoinedMember",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "LeavingMember",
    "LeftMember",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListedGroup",
    "MemberAssignment",
    "Message",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetDeleteRequest",
    "OffsetDeleteResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "PartitionToCommit",
    "PartitionToDelete",
    "PartitionToReset",
    "Protocol",
    "ReadQuarantinedGroupRequest",
    "ReadQuarantinedGroupResponse",
    "RequestBody",
    "RequestEnvelope",
    "ResetOffsetsRequest",
    "ResetOffsetsResponse",
    "ResetPartition",
    "ResetTopic",
    "ResponseBody",
    "ResponseEnvelope",
    "SetGroupConfigRequest",
    "SetGroupConfigResponse",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "TopicDescription",
    "TopicIdPartitions",
    "TopicToCommit",
    "TopicToDelete",
    "TopicToFetch",
    "TopicToReset",
    "TopicsDeletedRequest",
    "TopicsDeletedResponse",
    "TopicsDescribedRequest",
    "TopicsDescribedResponse",
    "TxnMarker",
    "TxnMarkerPartitionResult",
    "TxnMarkerResult",
    "TxnMarkerTopic",
    "TxnMarkerTopicResult",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
    "TxnPartitionToCommit",
    "TxnTopicToCommit",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
]
