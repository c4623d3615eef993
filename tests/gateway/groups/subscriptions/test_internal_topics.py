"""No group is told of the coordinator's own topics that clients may not read, however a member comes to name them."""

from typing import Any

import msgspec
import pytest

from coordinator_logic.messages import (
    GroupToFetch,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    SyncGroupRequest,
    TopicToCommit,
    TopicToFetch,
)
from streaming.contract.topics import TopicNames
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator, topic_id
from tests.gateway.groups.driven.member import GROUP, GatewayMember
from tests.logic.driver import reading
from tests.support.parts import consumer_group
from tests.support.virtual_time import run_in_virtual_time

OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, SYNC_GROUP = 8, 9, 11, 14
NAMES = TopicNames()
REFUSED = "topic_authorization_failed"


class Scene:
    """A gateway in front of a cluster with all topics of the coordinator, and one of the users."""

    def __init__(self) -> None:
        self.cluster = Cluster(orders=1, **dict.fromkeys(sorted(NAMES.all), 1))
        self.coordinator = LogicCoordinator()
        self.gateway = Gateway(self.coordinator, self.cluster)

    def member(self, member_id: str = "m") -> GatewayMember:
        return GatewayMember(self.gateway, member_id)

    async def settle(self, member: GatewayMember) -> None:
        """Let the gateway look at the topics, and the member follow."""
        await self.gateway.notifier.refresh()
        await member.beat()
        await member.beat()


@pytest.mark.parametrize("pattern", [".*", ".*o.*", "group-.*|orders"])
def test_a_pattern_that_matches_everything_gets_the_topics_of_others(pattern: str) -> None:
    async def story() -> None:
        scene = Scene()
        member = scene.member()
        await member.join(pattern=pattern)
        await scene.settle(member)
        assert member.owned == {topic_id(0): {0}}
        assert consumer_group(scene.coordinator.group(GROUP).group).topics.keys() == {"orders"}

    run_in_virtual_time(story())


def test_a_subscription_is_refused_for_what_clients_may_not_read_only() -> None:
    async def story() -> None:
        scene = Scene()
        for name in (NAMES.requests, NAMES.responses, NAMES.transactions):
            answer = await scene.member().join("orders", name)
            assert answer.error_code.name == REFUSED
        member = scene.member()
        answer = await member.join(NAMES.journal)
        assert answer.error_code.name == "none"
        assert member.owned == {scene.cluster.id_of(NAMES.journal): {0}}

    run_in_virtual_time(story())


def test_a_classic_group_is_converted_without_what_clients_may_not_read() -> None:
    async def story() -> None:
        scene = Scene()
        join = JoinGroupRequest(GROUP, 10_000, "consumer", reading("orders", NAMES.responses), 10_000)
        needed = await scene.gateway.ask(JOIN_GROUP, 5, join)
        joined = await scene.gateway.ask(JOIN_GROUP, 5, msgspec.structs.replace(join, member_id=needed.member_id))
        sync = SyncGroupRequest(GROUP, joined.generation_id, joined.member_id)
        assert (await scene.gateway.ask(SYNC_GROUP, 3, sync)).error_code.name == "none"
        member = scene.member()
        await member.join("orders")
        await scene.settle(member)
        assert consumer_group(scene.coordinator.group(GROUP).group).topics.keys() == {"orders"}

    run_in_virtual_time(story())


@pytest.mark.parametrize("version", [9, 10])
def test_offsets_are_refused_for_what_clients_may_not_read_only(version: int) -> None:
    async def story() -> None:
        scene = Scene()

        def identified(name: str) -> dict[str, str]:
            by_id = {"name": "", "topic_id": scene.cluster.id_of(name)}
            return by_id if version == 10 else {"name": name}

        def errors(topics: Any) -> list[str]:
            return [topic.partitions[0].error_code.name for topic in topics]

        topics = [
            TopicToCommit(partitions=[PartitionToCommit(0, 1)], **identified(name))
            for name in (NAMES.responses, NAMES.journal)
        ]
        committed = await scene.gateway.ask(OFFSET_COMMIT, version, OffsetCommitRequest("g", topics))
        assert errors(committed.topics) == [REFUSED, "none"]
        asked = [TopicToFetch(partition_indexes=[0], **identified(name)) for name in (NAMES.journal, NAMES.responses)]
        fetch = OffsetFetchRequest(groups=[GroupToFetch("g", asked)])
        (group,) = (await scene.gateway.ask(OFFSET_FETCH, version, fetch)).groups
        assert errors(group.topics) == ["none", REFUSED]

    run_in_virtual_time(story())
