"""A group whose state cannot be read refuses every request in the form of its API."""

import pytest

from coordinator_logic import snapshot
from coordinator_logic.apis import APIS
from coordinator_logic.errors import Error
from coordinator_logic.group import dead_group
from coordinator_logic.messages import (
    CommittedPartition,
    CommittedTopic,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    Coordinator,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DropQuarantinedGroupRequest,
    DropQuarantinedGroupResponse,
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    GroupToFetch,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToCommit,
    PartitionToDelete,
    ReadQuarantinedGroupRequest,
    ReadQuarantinedGroupResponse,
    RequestBody,
    ResetOffsetsRequest,
    ResetOffsetsResponse,
    ResponseBody,
    SetGroupConfigRequest,
    SetGroupConfigResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TakeOverOffsetsRequest,
    TakeOverOffsetsResponse,
    TopicsDeletedRequest,
    TopicsDeletedResponse,
    TopicsDescribedRequest,
    TopicsDescribedResponse,
    TopicToCommit,
    TopicToDelete,
    TopicToFetch,
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
from tests.logic.driver import GROUP_ID, Driven, listing

ERROR = Error.COORDINATOR_NOT_AVAILABLE
TOPICS = [TopicToCommit("t", [PartitionToCommit(0, 1), PartitionToCommit(2, 1)])]
FETCHED = [TopicToFetch("t", [0, 2])]
REFUSALS: list[tuple[str, int, RequestBody, ResponseBody]] = [
    (
        "FindCoordinator",
        3,
        FindCoordinatorRequest("g"),
        FindCoordinatorResponse(ERROR, "COORDINATOR_NOT_AVAILABLE"),
    ),
    (
        "FindCoordinator",
        4,
        FindCoordinatorRequest(coordinator_keys=["g"]),
        FindCoordinatorResponse(coordinators=[Coordinator("g", -1, "", -1, ERROR, "COORDINATOR_NOT_AVAILABLE")]),
    ),
    (
        "JoinGroup",
        9,
        JoinGroupRequest(GROUP_ID, 10_000, "consumer", listing("range"), 10_000, "m"),
        JoinGroupResponse(ERROR, member_id="m"),
    ),
    ("SyncGroup", 5, SyncGroupRequest(GROUP_ID, 1, "m"), SyncGroupResponse(ERROR)),
    ("Heartbeat", 4, HeartbeatRequest(GROUP_ID, 1, "m"), HeartbeatResponse(ERROR)),
    ("LeaveGroup", 0, LeaveGroupRequest(GROUP_ID, "m"), LeaveGroupResponse(ERROR)),
    ("LeaveGroup", 5, LeaveGroupRequest(GROUP_ID, members=[LeavingMember("m")]), LeaveGroupResponse(ERROR)),
    (
        "OffsetCommit",
        9,
        OffsetCommitRequest(GROUP_ID, TOPICS),
        OffsetCommitResponse([CommittedTopic("t", [CommittedPartition(0, ERROR), CommittedPartition(2, ERROR)])]),
    ),
    (
        "OffsetFetch",
        1,
        OffsetFetchRequest(GROUP_ID, FETCHED),
        OffsetFetchResponse(topics=[FetchedTopic("t", [FetchedPartition(i, error_code=ERROR) for i in (0, 2)])]),
    ),
    ("OffsetFetch", 2, OffsetFetchRequest(GROUP_ID, FETCHED), OffsetFetchResponse(ERROR)),
    (
        "OffsetFetch",
        8,
        OffsetFetchRequest(groups=[GroupToFetch(GROUP_ID, FETCHED)]),
        OffsetFetchResponse(groups=[FetchedGroup(GROUP_ID, [], ERROR)]),
    ),
    (
        "DescribeGroups",
        5,
        DescribeGroupsRequest([GROUP_ID, "other"]),
        DescribeGroupsResponse([DescribedGroup(GROUP_ID, ERROR), DescribedGroup("other", ERROR)]),
    ),
    (
        "DeleteGroups",
        2,
        DeleteGroupsRequest([GROUP_ID, GROUP_ID]),
        DeleteGroupsResponse([DeletedGroup(GROUP_ID, ERROR)]),
    ),
    (
        "OffsetDelete",
        0,
        OffsetDeleteRequest(GROUP_ID, [TopicToDelete("t", [PartitionToDelete(0)])]),
        OffsetDeleteResponse(ERROR),
    ),
    (
        "TxnOffsetCommit",
        5,
        TxnOffsetCommitRequest("txn", GROUP_ID, 1, 0, [TxnTopicToCommit("t", [TxnPartitionToCommit(2, 1)])]),
        TxnOffsetCommitResponse([CommittedTopic("t", [CommittedPartition(2, ERROR)])]),
    ),
    (
        "WriteTxnMarkers",
        1,
        WriteTxnMarkersRequest([TxnMarker(1, 0, True, [TxnMarkerTopic("t", [2])])]),
        WriteTxnMarkersResponse(
            [TxnMarkerResult(1, [TxnMarkerTopicResult("t", [TxnMarkerPartitionResult(2, ERROR)])])]
        ),
    ),
    ("TopicsDeleted", 0, TopicsDeletedRequest(["t"]), TopicsDeletedResponse(ERROR)),
    (
        "ConsumerGroupHeartbeat",
        1,
        ConsumerGroupHeartbeatRequest("the-group", "m", 1),
        ConsumerGroupHeartbeatResponse(ERROR),
    ),
    (
        "ConsumerGroupDescribe",
        1,
        ConsumerGroupDescribeRequest(["g"]),
        ConsumerGroupDescribeResponse([DescribedConsumerGroup("g", ERROR)]),
    ),
    ("SetGroupConfig", 0, SetGroupConfigRequest("g"), SetGroupConfigResponse(ERROR)),
    ("TopicsDescribed", 0, TopicsDescribedRequest([]), TopicsDescribedResponse(ERROR)),
    ("ReadQuarantinedGroup", 0, ReadQuarantinedGroupRequest(), ReadQuarantinedGroupResponse(ERROR)),
    ("DropQuarantinedGroup", 0, DropQuarantinedGroupRequest(), DropQuarantinedGroupResponse(ERROR)),
    ("ResetOffsets", 0, ResetOffsetsRequest(GROUP_ID, []), ResetOffsetsResponse(ERROR)),
    ("TakeOverOffsets", 0, TakeOverOffsetsRequest(GROUP_ID, []), TakeOverOffsetsResponse(ERROR)),
]


@pytest.mark.parametrize(("api", "version", "body", "refusal"), REFUSALS)
def test_a_quarantined_group_refuses_every_request_in_the_form_of_its_api(
    driven: Driven, api: str, version: int, body: RequestBody, refusal: ResponseBody
) -> None:
    quarantined = snapshot.encode(dead_group(GROUP_ID, ""))
    driven.snapshot = quarantined
    answer = driven.send(api, body, version=version)
    assert (answer.error, answer.body) == (ERROR, refusal)
    driven.sleep(1_000_000)
    assert driven.snapshot == quarantined
    assert driven.journal == []
    assert driven.wake_at is None


def test_the_refusals_cover_every_api() -> None:
    assert {api for api, *_ in REFUSALS} == set(APIS)
