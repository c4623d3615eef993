"""Requests for large groups wait in the gateway; those of everybody else do not."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from coordinator_logic.apis import APIS, OFFSET_COMMIT
from coordinator_logic.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    GroupToFetch,
    JoinGroupRequest,
    Message,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    Protocol,
    SyncGroupRequest,
    TopicToCommit,
    TopicToFetch,
)
from coordinator_logic.records import GroupDirectoryEntry
from streaming.gateway.groups.large_reads import BYTES_OF_AN_ADDRESS
from streaming.gateway.wire.answer_room import ASSIGNMENT_BYTES, Settle, current_answer_room
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator
from tests.logic.driver.answers import listing

LARGE = BYTES_OF_AN_ADDRESS // 2
VERSIONS = {"OffsetCommit": 8, "OffsetFetch": 8, "DescribeGroups": 5, "JoinGroup": 3}
GROUPS = [f"large-{number}" for number in range(120)]


class Coordinator(LogicCoordinator):
    """A coordinator of groups whose names say that they are large."""

    def entry(self, group_id: str) -> GroupDirectoryEntry | None:
        entry = GroupDirectoryEntry(group_id, "Stable", "classic", "consumer", 1, 1)
        return replace(entry, stored_bytes=LARGE) if group_id.startswith("large") else entry


async def passes() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def ask(gateway: Gateway, api: str, body: Message) -> "asyncio.Task[Any]":
    key = APIS[api].key
    assert key is not None
    return asyncio.create_task(gateway.ask(key, VERSIONS.get(api, APIS[api].max_version), body))


def commit(group_id: str) -> OffsetCommitRequest:
    return OffsetCommitRequest(group_id, [TopicToCommit("orders", [PartitionToCommit(0, 1)])])


READS: dict[str, tuple[str, list[Message]]] = {
    "DescribeGroups": ("DescribeGroups", [DescribeGroupsRequest([group]) for group in GROUPS]),
    "ConsumerGroupDescribe": ("ConsumerGroupDescribe", [ConsumerGroupDescribeRequest([group]) for group in GROUPS]),
    "all offsets": ("OffsetFetch", [OffsetFetchRequest(groups=[GroupToFetch(group)]) for group in GROUPS]),
    "many groups of one request": ("DescribeGroups", [DescribeGroupsRequest(GROUPS)]),
    "one group again and again": ("DescribeGroups", [DescribeGroupsRequest(GROUPS[:1])] * 120),
}


@pytest.mark.parametrize("kind", READS)
def test_large_groups_are_asked_for_a_few_at_a_time_and_a_commit_does_not_wait(kind: str) -> None:
    api, bodies = READS[kind]

    async def run() -> None:
        coordinator = Coordinator()
        gateway = Gateway(coordinator, Cluster(orders=1))
        coordinator.is_silent = True
        reading = [ask(gateway, api, body) for body in bodies]
        await passes()
        assert len(coordinator.sent(api)) == BYTES_OF_AN_ADDRESS // LARGE
        assert OFFSET_COMMIT.key is not None
        named = OffsetFetchRequest(groups=[GroupToFetch(GROUPS[0], [TopicToFetch("orders", [0])])])
        small = [ask(gateway, OFFSET_COMMIT.name, commit("other")), ask(gateway, "OffsetFetch", named)]
        await passes()
        assert len(coordinator.sent("OffsetCommit")) == 1
        assert coordinator.events[-1][0] == "OffsetFetch"
        coordinator.catch_up()
        await asyncio.gather(*reading, *small)
        assert len(coordinator.sent(api)) >= len(bodies)

    asyncio.run(run())


def test_a_leader_that_joins_again_and_again_is_sent_all_metadata_a_few_times_at_once() -> None:
    async def run() -> None:
        coordinator = Coordinator(group_initial_rebalance_delay_ms=3_000)
        gateway = Gateway(coordinator, Cluster(orders=1))
        protocols = listing("range", metadata=bytes(1_000_000))
        leader = coordinator.group("group").join_with_members(3, protocols=protocols)[0]
        again = JoinGroupRequest("group", 30_000, "consumer", protocols, 60_000, leader.member_id)
        assert len((await ask(gateway, "JoinGroup", again)).members) == 3
        coordinator.is_silent = True
        before = len(coordinator.sent("JoinGroup"))
        joining = [ask(gateway, "JoinGroup", again) for _ in range(50)]
        committing = ask(gateway, "OffsetCommit", commit("other"))
        await passes()
        assert len(coordinator.sent("JoinGroup")) - before == BYTES_OF_AN_ADDRESS // 4_000_000
        assert len(coordinator.sent("OffsetCommit")) == 1
        coordinator.catch_up()
        await asyncio.gather(committing, *joining)

    asyncio.run(run())


@pytest.mark.parametrize(
    "body",
    [
        JoinGroupRequest("group", 30_000, "consumer", [Protocol("range", b"")], member_id="member"),
        SyncGroupRequest("group", 1, "member"),
        ConsumerGroupHeartbeatRequest("group", "member", 0, None, None, 60_000, ["orders"], topic_partitions=[]),
    ],
    ids=lambda body: type(body).__name__,
)
def test_a_request_whose_answer_has_an_assignment_or_members_waits_for_room_in_its_connection(body: Message) -> None:
    async def run() -> None:
        asked: list[tuple[int, bool]] = []
        has_room = asyncio.Event()

        async def room(size: int, may_park: bool) -> Settle:
            asked.append((size, may_park))
            await has_room.wait()
            return lambda _size: None

        current_answer_room.set(room)
        coordinator = Coordinator()
        api = type(body).__name__.removesuffix("Request")
        answer = ask(Gateway(coordinator, Cluster(orders=1)), api, body)
        await passes()
        assert asked == [(ASSIGNMENT_BYTES, True)]
        assert not coordinator.sent(api)
        has_room.set()
        await answer
        assert coordinator.sent(api)

    asyncio.run(run())
