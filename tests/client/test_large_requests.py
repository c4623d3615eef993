"""Requests that are large on Kafka's wire, on topics with a broker's default limits."""

import os

import msgspec
import pytest

from coordinator_logic.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    MemberAssignment,
    Message,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    SyncGroupRequest,
    TopicToCommit,
)
from streaming.client import CoordinatorClient
from streaming.client.errors import RequestTooLarge
from tests.support.scripted_coordinator import ScriptedCoordinator
from tests.support.waiting import LIMIT_SECONDS

GROUP = "group"
BEAT = HeartbeatRequest(GROUP, 1, "m-1")


def assigning(size: int) -> SyncGroupRequest:
    """A leader's SyncGroup whose assignment cannot be compressed."""
    return SyncGroupRequest(GROUP, 1, "m-1", assignments=[MemberAssignment("m-1", os.urandom(size))])


def joining(size: int) -> JoinGroupRequest:
    return JoinGroupRequest(GROUP, 30_000, "consumer", [Protocol("range", os.urandom(size))])


def committing(characters: int) -> OffsetCommitRequest:
    """A commit with control characters, each of which takes six bytes in JSON."""
    partition = PartitionToCommit(0, 1, committed_metadata="\1" * characters)
    return OffsetCommitRequest(GROUP, [TopicToCommit("topic", [partition])])


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("SyncGroup", assigning(780_000)),
        ("SyncGroup", assigning(1_000_000)),
        ("JoinGroup", joining(800_000)),
        ("OffsetCommit", committing(180_000)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_broker_takes_reaches_the_log(
    scripted: ScriptedCoordinator, client: CoordinatorClient, api: str, body: Message
) -> None:
    answer = client.send(GROUP, api, 5, body)
    request = scripted.request(api)
    assert msgspec.json.decode(request.body, type=type(body)) == body
    scripted.answer(request, None, 0)
    answer.result(LIMIT_SECONDS)


def test_requests_of_a_group_keep_their_order_whatever_their_sizes(
    scripted: ScriptedCoordinator, client: CoordinatorClient
) -> None:
    apis = ["Heartbeat", "JoinGroup", "Heartbeat", "JoinGroup", "JoinGroup", "Heartbeat"]
    bodies = {"Heartbeat": BEAT, "JoinGroup": joining(600_000)}
    answers = [client.send(GROUP, api, 4, bodies[api]) for api in apis]
    requests = [scripted.request("Heartbeat", "JoinGroup") for _ in apis]
    assert [request.api for request in requests] == apis
    for request in requests:
        scripted.answer(request, None, 0)
    for answer in answers:
        answer.result(LIMIT_SECONDS)


@pytest.mark.parametrize("size", [1_200_000, 4_000_000], ids=["for-the-broker", "for-the-producer"])
def test_the_coordinator_hears_of_assignments_that_are_too_large(
    scripted: ScriptedCoordinator, client: CoordinatorClient, size: int
) -> None:
    answer = client.send(GROUP, "SyncGroup", 5, assigning(size))
    request = scripted.request("SyncGroup")
    body = msgspec.json.decode(request.body, type=SyncGroupRequest)
    assert (body.member_id, body.assignments, body.assignments_too_large) == ("m-1", [], True)
    scripted.answer(request, None, -1)
    assert answer.result(LIMIT_SECONDS).error_code == -1


def test_another_request_that_is_too_large_fails_and_the_next_one_goes_on(
    scripted: ScriptedCoordinator, client: CoordinatorClient
) -> None:
    failed = client.send(GROUP, "JoinGroup", 5, joining(1_200_000))
    beat = client.send(GROUP, "Heartbeat", 4, BEAT)
    with pytest.raises(RequestTooLarge):
        failed.result(LIMIT_SECONDS)
    scripted.answer(scripted.request("Heartbeat"), None, 0)
    beat.result(LIMIT_SECONDS)
