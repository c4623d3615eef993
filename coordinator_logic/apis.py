"""The registry of APIs: Kafka's name and key, the versions served, and what each version changed.

Handlers, clients, envelope, gateway and documents derive from it. Nothing else in the project states an API's key or
its range of versions, or the version from which on a request or its answer has another meaning.

Source: the schemas of Apache Kafka 4.3 (``clients/src/main/resources/common/message``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from coordinator_logic import messages

JOIN_GROUP_FIRST_VERSION_REQUIRING_MEMBER_ID = 4
JOIN_GROUP_FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9
SYNC_GROUP_FIRST_VERSION_WITH_PROTOCOL = 5
LEAVE_GROUP_FIRST_VERSION_WITH_MEMBERS = 3
OFFSET_COMMIT_VERSION_WITH_COMMIT_TIMESTAMP = 1
OFFSET_COMMIT_VERSIONS_WITH_RETENTION_TIME = range(2, 5)
OFFSET_COMMIT_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9
OFFSET_FETCH_FIRST_VERSION_WITH_TOP_LEVEL_ERROR = 2
OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS = 8
FIND_COORDINATOR_FIRST_VERSION_WITH_KEYS = 4
DESCRIBE_GROUPS_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 6
TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_LOADING = 2
"""Producers that send an earlier version crash on COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""
TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_MEMBER = 3
TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_TRANSACTION_ABORTABLE = 4
TXN_OFFSET_COMMIT_FIRST_VERSION_ADDING_THE_GROUP = 5
OFFSET_COMMIT_FIRST_VERSION_OF_CONSUMER_MEMBERS = 9
CONSUMER_GROUP_HEARTBEAT_FIRST_VERSION_WITH_MEMBER_ID_OF_CLIENT = 1
CONSUMER_GROUP_DESCRIBE_FIRST_VERSION_WITH_MEMBER_TYPE = 1

RequestT = TypeVar("RequestT", bound=messages.Message)
ResponseT = TypeVar("ResponseT", bound=messages.Message)


@dataclass(frozen=True)
class Api(Generic[RequestT, ResponseT]):
    """An API of the coordinator.

    ``key`` is None for an event that Kafka's protocol does not have. ``changes`` says by version what that version
    changed for a caller; a version without an entry changed only the encoding on Kafka's wire.
    """

    name: str
    key: int | None
    versions: range
    request_type: type[RequestT]
    response_type: type[ResponseT]
    changes: Mapping[int, str] = field(default_factory=dict)

    @property
    def min_version(self) -> int:
        """The lowest version that is served."""
        return self.versions.start

    @property
    def max_version(self) -> int:
        """The highest version that is served."""
        return self.versions.stop - 1


OFFSET_COMMIT = Api(
    "OffsetCommit",
    8,
    range(10),
    messages.OffsetCommitRequest,
    messages.OffsetCommitResponse,
    {
        OFFSET_COMMIT_VERSION_WITH_COMMIT_TIMESTAMP: "adds member id, generation and commit timestamps",
        OFFSET_COMMIT_VERSIONS_WITH_RETENTION_TIME.start: "adds the retention time; drops the commit timestamp",
        OFFSET_COMMIT_VERSIONS_WITH_RETENTION_TIME.stop: "drops the retention time (KIP-211)",
        6: "adds leader epochs (KIP-320)",
        7: "adds the group instance id (KIP-345)",
        OFFSET_COMMIT_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND: (
            "answers GROUP_ID_NOT_FOUND instead of ILLEGAL_GENERATION for a group that does not exist (KIP-848)"
        ),
    },
)
OFFSET_FETCH = Api(
    "OffsetFetch",
    9,
    range(10),
    messages.OffsetFetchRequest,
    messages.OffsetFetchResponse,
    {
        OFFSET_FETCH_FIRST_VERSION_WITH_TOP_LEVEL_ERROR: (
            "fetches all topics when `topics` is null; reports an error of the group at the top level"
        ),
        5: "adds leader epochs (KIP-320)",
        7: "adds `requireStable`: UNSTABLE_OFFSET_COMMIT while a transaction has a pending offset (KIP-447)",
        OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS: "fetches several groups, each with its own error (KIP-709)",
        9: "adds member id and epoch for the consumer group protocol (KIP-848); ignored for classic groups",
    },
)
FIND_COORDINATOR = Api(
    "FindCoordinator",
    10,
    range(7),
    messages.FindCoordinatorRequest,
    messages.FindCoordinatorResponse,
    {
        1: "adds the key type: group or transactional id; only groups are served",
        FIND_COORDINATOR_FIRST_VERSION_WITH_KEYS: "looks up several keys, with one result for each (KIP-699)",
        6: "adds the key type of share groups (KIP-932); not served",
    },
)
JOIN_GROUP = Api(
    "JoinGroup",
    11,
    range(10),
    messages.JoinGroupRequest,
    messages.JoinGroupResponse,
    {
        1: "adds the rebalance timeout (KIP-62); version 0 uses the session timeout",
        JOIN_GROUP_FIRST_VERSION_REQUIRING_MEMBER_ID: (
            "answers a dynamic member's first join MEMBER_ID_REQUIRED with an id, to join again with (KIP-394)"
        ),
        5: "adds the group instance id (KIP-345)",
        7: "adds the protocol type to the response; the protocol name may be null (KIP-559)",
        8: "adds the reason (KIP-800)",
        JOIN_GROUP_FIRST_VERSION_WITH_SKIP_ASSIGNMENT: "adds `skipAssignment` to the response (KIP-814)",
    },
)
HEARTBEAT = Api(
    "Heartbeat",
    12,
    range(5),
    messages.HeartbeatRequest,
    messages.HeartbeatResponse,
    {3: "adds the group instance id (KIP-345)"},
)
LEAVE_GROUP = Api(
    "LeaveGroup",
    13,
    range(6),
    messages.LeaveGroupRequest,
    messages.LeaveGroupResponse,
    {
        LEAVE_GROUP_FIRST_VERSION_WITH_MEMBERS: "removes several members, by member id or instance id (KIP-345)",
        5: "adds a reason for each member (KIP-800)",
    },
)
SYNC_GROUP = Api(
    "SyncGroup",
    14,
    range(6),
    messages.SyncGroupRequest,
    messages.SyncGroupResponse,
    {
        3: "adds the group instance id (KIP-345)",
        SYNC_GROUP_FIRST_VERSION_WITH_PROTOCOL: "adds protocol type and name, which must be the group's (KIP-559)",
    },
)
DESCRIBE_GROUPS = Api(
    "DescribeGroups",
    15,
    range(7),
    messages.DescribeGroupsRequest,
    messages.DescribeGroupsResponse,
    {
        3: "adds authorized operations (KIP-430)",
        4: "adds the members' group instance ids (KIP-345)",
        DESCRIBE_GROUPS_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND: (
            "answers GROUP_ID_NOT_FOUND with a message for a group that does not exist (KIP-1043), not state Dead"
        ),
    },
)
LIST_GROUPS = Api(
    "ListGroups",
    16,
    range(6),
    messages.ListGroupsRequest,
    messages.ListGroupsResponse,
    {4: "adds the filter by state (KIP-518)", 5: "adds the filter by type (KIP-848)"},
)
"""Not a request event, since no single group could answer it: it is answered from the compacted directory topic."""
WRITE_TXN_MARKERS = Api(
    "WriteTxnMarkers", 27, range(2), messages.WriteTxnMarkersRequest, messages.WriteTxnMarkersResponse
)
TXN_OFFSET_COMMIT = Api(
    "TxnOffsetCommit",
    28,
    range(6),
    messages.TxnOffsetCommitRequest,
    messages.TxnOffsetCommitResponse,
    {
        2: "adds leader epochs (KIP-320)",
        TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_MEMBER: "adds the committing member, which is checked (KIP-447)",
        TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_TRANSACTION_ABORTABLE: (
            "lets the error be TRANSACTION_ABORTABLE, after which the producer may abort and go on (KIP-890)"
        ),
        TXN_OFFSET_COMMIT_FIRST_VERSION_ADDING_THE_GROUP: (
            "lets the broker add the group to the transaction automatically (KIP-890)"
        ),
    },
)
DELETE_GROUPS = Api("DeleteGroups", 42, range(3), messages.DeleteGroupsRequest, messages.DeleteGroupsResponse)
OFFSET_DELETE = Api("OffsetDelete", 47, range(1), messages.OffsetDeleteRequest, messages.OffsetDeleteResponse)
CONSUMER_GROUP_HEARTBEAT = Api(
    "ConsumerGroupHeartbeat",
    68,
    range(2),
    messages.ConsumerGroupHeartbeatRequest,
    messages.ConsumerGroupHeartbeatResponse,
    {
        CONSUMER_GROUP_HEARTBEAT_FIRST_VERSION_WITH_MEMBER_ID_OF_CLIENT: (
            "adds the subscription by pattern; the client generates its member id (KIP-1082)"
        )
    },
)
CONSUMER_GROUP_DESCRIBE = Api(
    "ConsumerGroupDescribe",
    69,
    range(2),
    messages.ConsumerGroupDescribeRequest,
    messages.ConsumerGroupDescribeResponse,
    {
        CONSUMER_GROUP_DESCRIBE_FIRST_VERSION_WITH_MEMBER_TYPE: (
            "adds `memberType`: whether a member speaks the classic or the consumer group protocol (KIP-1099)"
        )
    },
)
SET_GROUP_CONFIG = Api(
    "SetGroupConfig", None, range(1), messages.SetGroupConfigRequest, messages.SetGroupConfigResponse
)
TOPICS_DESCRIBED = Api(
    "TopicsDescribed", None, range(1), messages.TopicsDescribedRequest, messages.TopicsDescribedResponse
)
TOPICS_DELETED = Api("TopicsDeleted", None, range(1), messages.TopicsDeletedRequest, messages.TopicsDeletedResponse)
RESET_OFFSETS = Api("ResetOffsets", None, range(1), messages.ResetOffsetsRequest, messages.ResetOffsetsResponse)
TAKE_OVER_OFFSETS = Api(
    "TakeOverOffsets", None, range(1), messages.TakeOverOffsetsRequest, messages.TakeOverOffsetsResponse
)
READ_QUARANTINED_GROUP = Api(
    "ReadQuarantinedGroup", None, range(1), messages.ReadQuarantinedGroupRequest, messages.ReadQuarantinedGroupResponse
)
DROP_QUARANTINED_GROUP = Api(
    "DropQuarantinedGroup", None, range(1), messages.DropQuarantinedGroupRequest, messages.DropQuarantinedGroupResponse
)

APIS: dict[str, Api[Any, Any]] = {
    api.name: api
    for api in (
        FIND_COORDINATOR,
        JOIN_GROUP,
        SYNC_GROUP,
        HEARTBEAT,
        LEAVE_GROUP,
        OFFSET_COMMIT,
        OFFSET_FETCH,
        DESCRIBE_GROUPS,
        DELETE_GROUPS,
        OFFSET_DELETE,
        TXN_OFFSET_COMMIT,
        WRITE_TXN_MARKERS,
        CONSUMER_GROUP_HEARTBEAT,
        CONSUMER_GROUP_DESCRIBE,
        TOPICS_DELETED,
        TOPICS_DESCRIBED,
        RESET_OFFSETS,
        TAKE_OVER_OFFSETS,
        SET_GROUP_CONFIG,
        READ_QUARANTINED_GROUP,
        DROP_QUARANTINED_GROUP,
    )
}
"""Every API that a request event can name, by name."""
