"""The client's methods for Kafka's group APIs, against a real coordinator."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    GroupToFetch,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    SyncGroupRequest,
    TopicToCommit,
    TopicToFetch,
)
from coordinator_logic.partitioning import partition_for
from streaming.client import CoordinatorClient, CoordinatorError, GroupIdNotFound, MemberIdRequired, UnknownMemberId
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

SESSION_MS = 60_000
"""Long, because the members of these tests send no heartbeats."""


@pytest.fixture(scope="module")
def client(coordinator: CoordinatorProcess) -> Iterator[CoordinatorClient]:
    with CoordinatorClient(
        coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix, client_id="calls"
    ) as client:
        yield client


def commit(client: CoordinatorClient, group_id: str, offset: int, topic: str = "orders") -> None:
    """Commit an offset for partition 0 of a topic, from outside the group's membership."""
    topics = [TopicToCommit(topic, [PartitionToCommit(0, offset, committed_metadata="by a test")])]
    answer = client.offset_commit(OffsetCommitRequest(group_id, topics))
    assert answer.topics[0].partitions[0].error_code == 0


def committed(client: CoordinatorClient, *group_ids: str, topic: str = "orders") -> list[tuple[str, int]]:
    groups = [GroupToFetch(group_id, [TopicToFetch(topic, [0])]) for group_id in group_ids]
    fetched = client.offset_fetch(groups, require_stable=True).groups
    return [(group.group_id, group.topics[0].partitions[0].committed_offset) for group in fetched]


def join(client: CoordinatorClient, group_id: str) -> JoinGroupResponse:
    """Join as the group's first member."""
    request = JoinGroupRequest(group_id, SESSION_MS, "connect", [Protocol("p", b"metadata")], SESSION_MS)
    with pytest.raises(MemberIdRequired) as required:
        client.join_group(request)
    assert isinstance(required.value.body, JoinGroupResponse)
    member_id = required.value.body.member_id
    return client.join_group(
        JoinGroupRequest(group_id, SESSION_MS, "connect", [Protocol("p", b"metadata")], SESSION_MS, member_id)
    )


def test_find_coordinator_returns_the_groups_partition(
    coordinator: CoordinatorProcess, client: CoordinatorClient
) -> None:
    group_id = unique("found")
    found = client.find_coordinator(group_id)
    assert (found.key, found.host) == (group_id, coordinator.topics.requests)
    partitions = [p for p in range(1, 100) if partition_for(group_id, p) == found.node_id]
    assert partitions


def test_offsets_of_several_groups_come_in_the_order_of_the_request(client: CoordinatorClient) -> None:
    groups = [unique("offsets") for _ in range(3)]
    for offset, group_id in enumerate(groups):
        commit(client, group_id, offset)
    missing = unique("missing")
    assert committed(client, groups[2], missing, groups[0], groups[1]) == [
        (groups[2], 2), (missing, -1), (groups[0], 0), (groups[1], 1),
    ]  # fmt: skip


def test_all_offsets_of_a_group_are_fetched_without_naming_topics(client: CoordinatorClient) -> None:
    group_id = unique("all")
    commit(client, group_id, 11)
    [fetched] = client.offset_fetch([GroupToFetch(group_id)]).groups
    assert [(topic.name, topic.partitions[0].metadata) for topic in fetched.topics] == [("orders", "by a test")]


def test_a_member_joins_syncs_sends_a_heartbeat_and_leaves(client: CoordinatorClient) -> None:
    group_id = unique("life")
    joined = join(client, group_id)
    assert joined.leader == joined.member_id
    assert [member.metadata for member in joined.members] == [b"metadata"]
    synced = client.sync_group(
        SyncGroupRequest(
            group_id, joined.generation_id, joined.member_id, None, "connect", "p",
            [MemberAssignment(joined.member_id, b"everything")],
        )
    )  # fmt: skip
    assert synced.assignment == b"everything"
    client.heartbeat(HeartbeatRequest(group_id, joined.generation_id, joined.member_id))
    [described] = client.describe_groups([group_id]).groups
    assert (described.group_state, described.members[0].client_id) == ("Stable", "calls")
    left = client.leave_group(LeaveGroupRequest(group_id, members=[LeavingMember(joined.member_id)]))
    assert left.members[0].error_code == 0
    with pytest.raises(UnknownMemberId):
        client.heartbeat(HeartbeatRequest(group_id, joined.generation_id, joined.member_id))


def test_a_missing_group_does_not_fail_the_description_of_others(client: CoordinatorClient) -> None:
    existing, missing = unique("existing"), unique("missing")
    commit(client, existing, 1)
    described = client.describe_groups([missing, existing]).groups
    assert [(group.group_id, group.error_code) for group in described] == [
        (missing, Error.GROUP_ID_NOT_FOUND),
        (existing, Error.NONE),
    ]


def test_a_group_that_is_named_twice_is_deleted_once(client: CoordinatorClient) -> None:
    existing, missing = unique("existing"), unique("missing")
    commit(client, existing, 1)
    deleted = client.delete_groups([existing, missing, existing]).results
    assert [(group.group_id, group.error_code) for group in deleted] == [
        (existing, Error.NONE),
        (missing, Error.GROUP_ID_NOT_FOUND),
    ]
    assert committed(client, existing) == [(existing, -1)]


def test_offsets_are_deleted_by_partition(client: CoordinatorClient) -> None:
    group_id = unique("forgets")
    commit(client, group_id, 1)
    commit(client, group_id, 2, "invoices")
    partitions = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    [deleted] = client.delete_offsets(group_id, partitions).topics
    assert [(partition.partition_index, partition.error_code) for partition in deleted.partitions] == [(0, 0), (1, 0)]
    assert committed(client, group_id) == [(group_id, -1)]
    assert committed(client, group_id, topic="invoices") == [(group_id, 2)]
    with pytest.raises(GroupIdNotFound):
        client.delete_offsets(unique("missing"), partitions)


def test_every_group_deletes_its_offsets_of_a_deleted_topic(client: CoordinatorClient) -> None:
    topic, groups = unique("deleted"), {unique("readers"), unique("readers")}
    for group_id in groups:
        commit(client, group_id, 1, topic)
        commit(client, group_id, 2)
    wait_until(lambda: groups <= {group.group_id for group in client.list_groups().groups}, "they are in the directory")
    errors = client.topics_deleted([topic])
    assert {group_id: errors[group_id] for group_id in groups} == dict.fromkeys(groups, Error.NONE)
    assert set(committed(client, *groups, topic=topic)) == {(group_id, -1) for group_id in groups}
    assert set(committed(client, *groups)) == {(group_id, 2) for group_id in groups}


def test_groups_are_listed_by_state_and_type_until_they_are_deleted(client: CoordinatorClient) -> None:
    simple, member = unique("simple"), unique("member")
    commit(client, simple, 1)
    join(client, member)

    def listed(states: list[str], types: list[str] | None = None) -> set[str]:
        groups = client.list_groups(states, types or []).groups
        return {group.group_id for group in groups} & {simple, member}

    wait_until(lambda: listed([]) == {simple, member}, "both are in the directory")
    assert listed(["EMPTY"]) == {simple}
    assert listed(["completingrebalance", "stable"]) == {member}
    assert listed([], ["Classic"]) == {simple, member}
    assert listed([], ["consumer"]) == set()
    client.delete_groups([simple])
    wait_until(lambda: listed([]) == {member}, "the deleted group is gone from the directory")


def test_a_request_of_an_unknown_api_is_answered_with_an_error(client: CoordinatorClient) -> None:
    answer = client.send(unique("odd"), "Brew", 0, {}).result(LIMIT_SECONDS)
    assert answer.error_code == Error.INVALID_REQUEST
    assert answer.error_message
    assert "unknown api" in answer.error_message


def test_concurrent_clients_get_their_own_answers(coordinator: CoordinatorProcess) -> None:
    def use(client: CoordinatorClient) -> None:
        groups = [unique("both") for _ in range(40)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: commit(client, groups[number], number), range(40)))
        assert committed(client, *groups) == [(group_id, offset) for offset, group_id in enumerate(groups)]

    clients = [
        CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) for _ in range(2)
    ]
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(use, clients))
    finally:
        for client in clients:
            client.close()


def test_errors_of_the_whole_request_are_raised(client: CoordinatorClient) -> None:
    topics = [TopicToCommit("orders", [PartitionToCommit(0, 1)])]
    with pytest.raises(CoordinatorError) as raised:
        client.offset_commit(OffsetCommitRequest(unique("absent"), topics, 3, "unknown-member"))
    assert raised.value.error is Error.GROUP_ID_NOT_FOUND
