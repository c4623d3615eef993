"""The timeout policies of the group APIs, and the errors that follow from them."""

import pytest

from coordinator_logic.apis import APIS, CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, JOIN_GROUP
from coordinator_logic.errors import Error
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, HeartbeatRequest, JoinGroupRequest, Protocol
from streaming.client.errors import CoordinatorNotAvailable, RequestTooLarge, ResponseTimedOut
from streaming.gateway.groups.error_responses import outage_error
from streaming.gateway.groups.group_types import GROUP_TYPES
from streaming.gateway.groups.registry import timeout_policies
from streaming.gateway.groups.timeout_policies import GroupTimeouts, TimeoutPolicies

POLICIES = TimeoutPolicies(GroupTimeouts(), timeout_policies(GROUP_TYPES.values()))


def join(rebalance_timeout_ms: int, session_timeout_ms: int = 10_000) -> JoinGroupRequest:
    return JoinGroupRequest("g", session_timeout_ms, "consumer", [Protocol("range", b"")], rebalance_timeout_ms)


def test_every_group_api_has_a_policy() -> None:
    not_served_by_the_gateway = {"FindCoordinator", "WriteTxnMarkers", "ReadQuarantinedGroup", "DropQuarantinedGroup"}
    not_served_by_the_gateway |= {"ResetOffsets", "TakeOverOffsets"}
    assert POLICIES.by_api.keys() == APIS.keys() - not_served_by_the_gateway


def test_requests_that_share_a_connection_with_heartbeats_do_not_wait_longer_than_others() -> None:
    timeouts = GroupTimeouts()
    assert timeouts.stall_seconds < timeouts.leave_seconds < timeouts.consumer_seconds <= timeouts.request_seconds


@pytest.mark.parametrize(
    ("request_body", "seconds"),
    [(join(300_000), 305.0), (join(1_000), 25.0), (join(-1, 120_000), 125.0), (join(2**31 - 1), 1_800.0)],
)
def test_a_join_waits_as_long_as_its_client(request_body: JoinGroupRequest, seconds: float) -> None:
    assert POLICIES.of(JOIN_GROUP, request_body).seconds == seconds


def test_a_heartbeat_succeeds_without_a_response_only_when_it_is_in_the_log() -> None:
    policy = POLICIES.of(HEARTBEAT, HeartbeatRequest("g", 1, "m"))
    assert outage_error(policy, ResponseTimedOut("late"), appended=True) is Error.NONE
    assert outage_error(policy, CoordinatorNotAvailable("no broker"), appended=False) is not Error.NONE


@pytest.mark.parametrize(
    ("member_id", "epoch", "seconds"), [("m", 0, 5.0), ("m", 3, 5.0), ("", 0, 25.0), ("m", -1, 4.0)]
)
def test_a_heartbeat_to_a_consumer_group_waits_briefly_unless_its_repetition_did_harm(
    member_id: str, epoch: int, seconds: float
) -> None:
    request = ConsumerGroupHeartbeatRequest("g", member_id, epoch)
    assert POLICIES.of(CONSUMER_GROUP_HEARTBEAT, request).seconds == seconds


def test_a_request_that_is_too_large_gets_an_error_that_is_not_retriable() -> None:
    policy = POLICIES.of(JOIN_GROUP, join(1_000))
    assert not outage_error(policy, RequestTooLarge("2 MB"), appended=False).retriable
