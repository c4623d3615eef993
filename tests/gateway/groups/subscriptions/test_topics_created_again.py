"""A topic that is created again under its name is another topic, at once, for whatever a client asks of the gateway."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from kio.schema.errors import ErrorCode

from coordinator_logic.messages import (
    GroupToFetch,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    SyncGroupRequest,
    TopicsDeletedRequest,
    TopicToCommit,
)
from streaming.gateway.groups.look_schedule import SOON_SECONDS
from streaming.gateway.groups.subscriptions.topic_notifier import GONE_AFTER_SECONDS
from streaming.gateway.security.topic_catalog import RENEWAL_SECONDS
from streaming.gateway.wire.api_keys import METADATA
from streaming.gateway.wire.values import text_of_topic_id, topic_id_of_text
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator, topic_id
from tests.gateway.groups.driven.member import GROUP, GatewayMember
from tests.logic.driver import reading
from tests.support.parts import consumer_group
from tests.support.virtual_time import run_in_virtual_time

OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, SYNC_GROUP = 8, 9, 11, 14
WITH_IDS = 10
REFRESH_SECONDS = 5.0
SIMPLE = "a-group-without-members"


class CountingCluster(Cluster):
    """Counts the requests for topics."""

    lookups = 0

    async def topics(self, names: Any, /) -> Any:
        self.lookups += 1
        return await super().topics(names)

    async def topics_by_id(self, topic_ids: Any, /) -> Any:
        self.lookups += 1
        return await super().topics_by_id(topic_ids)


class Authorizing:
    """Answers as a broker of a cluster that has an authorizer, and allows everything."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def __call__(self, payload: Any) -> Any:
        if payload.__api_key__ != METADATA:
            partition = SimpleNamespace(error_code=ErrorCode.none)
            return SimpleNamespace(error_code=ErrorCode.none, topics=[SimpleNamespace(partitions=[partition])])
        ids = [text_of_topic_id(topic.topic_id) for topic in payload.topics if not topic.name]
        found = await self._cluster.topics([topic.name for topic in payload.topics if topic.name])
        found += await self._cluster.topics_by_id(ids)
        return SimpleNamespace(
            topics=[
                SimpleNamespace(
                    name=topic.name,
                    topic_id=topic_id_of_text(topic.topic_id) if topic.topic_id else None,
                    error_code=topic.error_code,
                    partitions=range(topic.partitions),
                    topic_authorized_operations=-1,
                )
                for topic in found
            ]
        )


class Scene:
    """A coordinator, and a gateway that looks at the topics of a cluster in the background."""

    def __init__(self, *, has_authorizer: bool = False, **topics: int) -> None:
        self.coordinator, self.cluster = LogicCoordinator(), CountingCluster(**topics)
        forward = Authorizing(self.cluster) if has_authorizer else None
        self.gateway = Gateway(self.coordinator, self.cluster, forward, refresh_seconds=REFRESH_SECONDS)

    async def commit(self, topic: str, partition: int = 0, version: int = WITH_IDS, group: str = SIMPLE) -> str:
        """Commit offset 7 of a topic, by id in the versions that have ids; returns the name of the error."""
        name, topic_id = ("", topic) if version >= WITH_IDS else (topic, "")
        body = OffsetCommitRequest(group, [TopicToCommit(name, [PartitionToCommit(partition, 7)], topic_id)])
        answer = await self.gateway.ask(OFFSET_COMMIT, version, body)
        return str(answer.topics[0].partitions[0].error_code.name)

    async def create_again(self, name: str, partitions: int) -> str:
        """Delete a topic, and create it again without anybody's telling the gateway; returns the new id."""
        self.cluster.create(name, partitions)
        # A commit just before may have asked for the topic; only what is older than that is asked again.
        await asyncio.sleep(2 * RENEWAL_SECONDS)
        return self.cluster.id_of(name)

    def member(self, member_id: str, group: str = GROUP) -> GatewayMember:
        return GatewayMember(self.gateway, member_id, group)


def play(scene: Scene, story: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def told() -> None:
        looking = asyncio.create_task(scene.gateway.notifier.run())
        try:
            await story(scene)
        finally:
            looking.cancel()

    run_in_virtual_time(told())


@pytest.mark.parametrize("has_authorizer", [False, True])
def test_a_commit_with_the_new_id_is_accepted_and_one_with_the_old_id_is_not(has_authorizer: bool) -> None:
    async def story(scene: Scene) -> None:
        old = scene.cluster.id_of("t")
        assert await scene.commit(old) == "none"
        new = await scene.create_again("t", 1)
        assert await scene.commit(new) == "none"
        assert await scene.commit(old) == "unknown_topic_id"

    play(Scene(t=1, has_authorizer=has_authorizer), story)


@pytest.mark.parametrize("has_authorizer", [False, True])
def test_a_commit_for_a_partition_that_was_added_is_accepted(has_authorizer: bool) -> None:
    async def story(scene: Scene) -> None:
        assert await scene.commit("t", 2, version=9) == "unknown_topic_or_partition"
        scene.cluster.grow("t", 3)
        await asyncio.sleep(RENEWAL_SECONDS)
        assert await scene.commit("t", 2, version=9) == "none"

    play(Scene(t=2, has_authorizer=has_authorizer), story)


def test_a_fetch_of_all_offsets_names_the_new_id() -> None:
    async def story(scene: Scene) -> None:
        scene.coordinator.group(SIMPLE).commit(offsets={("t", 0): 7})
        new = await scene.create_again("t", 1)
        fetched = await scene.gateway.ask(OFFSET_FETCH, WITH_IDS, OffsetFetchRequest(groups=[GroupToFetch(SIMPLE)]))
        (group,) = fetched.groups
        assert {text_of_topic_id(topic.topic_id) for topic in group.topics} == {new}

    play(Scene(t=1), story)


def test_a_new_group_is_assigned_the_new_topic_by_name_and_by_pattern() -> None:
    async def story(scene: Scene) -> None:
        first = scene.member("first")
        await first.join("t")
        by_pattern = scene.member("by-pattern", "matches")
        await by_pattern.join(pattern="t.*")
        new = await scene.create_again("t", 2)
        named, matching = scene.member("named", "names"), scene.member("matching", "matches-too")
        await named.join("t")
        assert named.owned == {new: {0, 1}}
        await matching.join(pattern="t.*")
        await matching.beat()
        assert matching.owned == {new: {0, 1}}

    play(Scene(t=1), story)


def test_a_classic_group_is_converted_with_the_new_topic() -> None:
    async def story(scene: Scene) -> None:
        assert await scene.commit("t", version=9, group="another") == "none"
        join = JoinGroupRequest(GROUP, 10_000, "consumer", reading("t"), 10_000)
        needed = await scene.gateway.ask(JOIN_GROUP, 5, join)
        joined = await scene.gateway.ask(JOIN_GROUP, 5, msgspec.structs.replace(join, member_id=needed.member_id))
        sync = SyncGroupRequest(GROUP, joined.generation_id, joined.member_id)
        assert (await scene.gateway.ask(SYNC_GROUP, 3, sync)).error_code.name == "none"
        new = await scene.create_again("t", 1)
        await scene.member("m").join("other")
        assert consumer_group(scene.coordinator.group(GROUP).group).topics["t"].topic_id == new

    play(Scene(t=1, other=1), story)


def test_a_group_that_learns_of_the_new_topic_from_a_heartbeat_is_told_that_the_old_one_is_gone() -> None:
    async def story(scene: Scene) -> None:
        first, second = scene.member("first"), scene.member("second")
        await first.join("t")
        old = scene.cluster.id_of("t")
        new = await scene.create_again("t", 2)
        await second.join("t")
        epoch = consumer_group(scene.coordinator.group(GROUP).group).epoch
        await asyncio.sleep(2 * REFRESH_SECONDS)
        assert scene.coordinator.sent("TopicsDeleted") == [TopicsDeletedRequest(["t"], {"t": [old]})]
        for _ in range(3):
            await first.beat()
            await second.beat()
        assert consumer_group(scene.coordinator.group(GROUP).group).epoch == epoch
        assert first.owned.keys() == second.owned.keys() == {new}

    play(Scene(t=1), story)


def test_a_change_that_passes_through_the_gateway_is_told_at_once() -> None:
    async def story(scene: Scene) -> None:
        member = scene.member("m")
        await member.join("t", "u")
        await asyncio.sleep(2 * REFRESH_SECONDS)
        scene.cluster.grow("t", 2)
        scene.gateway.topics_changed()
        await asyncio.sleep(0)
        await asyncio.sleep(SOON_SECONDS)
        await member.beat()
        assert member.owned == {topic_id(0): {0, 1}, topic_id(1): {0}}
        del scene.cluster.topics_now["u"]
        scene.gateway.topics_changed()
        await asyncio.sleep(GONE_AFTER_SECONDS + 2 * SOON_SECONDS)
        await member.beat()
        assert member.owned == {topic_id(0): {0, 1}}

    play(Scene(t=1, u=1), story)


def test_a_broker_that_hears_of_the_change_a_moment_later_is_asked_again() -> None:
    async def story(scene: Scene) -> None:
        member = scene.member("m")
        await member.join("t")
        await asyncio.sleep(2 * REFRESH_SECONDS)
        scene.gateway.topics_changed()
        await asyncio.sleep(4 * SOON_SECONDS)
        scene.cluster.grow("t", 2)
        await asyncio.sleep(2 * SOON_SECONDS)
        await member.beat()
        assert member.owned == {topic_id(0): {0, 1}}

    play(Scene(t=1), story)


def test_a_topic_that_is_created_just_after_its_first_member_joined_is_told_at_once() -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(REFRESH_SECONDS + 1)
        member = scene.member("m")
        await member.join("later")
        scene.cluster.create("later", 1)
        await asyncio.sleep(2 * SOON_SECONDS)
        await member.beat()
        assert member.owned == {topic_id(0): {0}}

    play(Scene(), story)


def test_what_a_commit_finds_out_is_a_reason_to_look_at_the_topics_of_groups() -> None:
    async def story(scene: Scene) -> None:
        member = scene.member("m")
        await member.join("t")
        await asyncio.sleep(REFRESH_SECONDS + 1)
        assert await scene.commit("t", 0, version=9) == "none"
        new = await scene.create_again("t", 1)
        assert await scene.commit(new) == "none"
        await asyncio.sleep(2 * SOON_SECONDS)
        await member.beat()
        await member.beat()
        assert member.owned == {new: {0}}

    play(Scene(t=1), story)


def test_requests_that_never_fit_ask_the_brokers_a_bounded_number_of_times() -> None:
    async def story(scene: Scene) -> None:
        before = scene.cluster.lookups
        for _ in range(1_000):
            assert await scene.commit("t", 5, version=9) == "unknown_topic_or_partition"
            assert await scene.commit(topic_id(77)) == "unknown_topic_id"
            scene.gateway.topics_changed()
            await asyncio.sleep(0.001)
        assert scene.cluster.lookups - before <= 2 * (1.0 / RENEWAL_SECONDS + 2)

    play(Scene(t=1), story)
