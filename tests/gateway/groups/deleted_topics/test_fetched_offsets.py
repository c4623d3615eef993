"""What clients get of offsets whose topic was deleted or created again, although no word of it reached the group."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from coordinator_logic.messages import (
    GroupToFetch,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    PartitionToDelete,
    TopicToCommit,
    TopicToDelete,
    TopicToFetch,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
)
from streaming.gateway.security.topic_catalog import EXISTING_TTL_SECONDS, RENEWAL_SECONDS
from streaming.gateway.wire.values import text_of_topic_id
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator
from tests.support.virtual_time import run_in_virtual_time

OFFSET_COMMIT, OFFSET_FETCH, TXN_OFFSET_COMMIT, OFFSET_DELETE = 8, 9, 28, 47
GROUP = "g"
BY_NAME, WITHOUT_GROUPS, BY_ID = 9, 7, 10


class Scene:
    """A gateway in front of a group without members, which has committed offsets of ``t`` and ``stays``."""

    def __init__(self) -> None:
        self.coordinator, self.cluster = LogicCoordinator(), Cluster(t=2, stays=1)
        self.gateway = Gateway(self.coordinator, self.cluster)

    async def commit(self, *topics: str, offset: int, version: int = BY_NAME, partition: int = 0) -> None:
        named = [(topic, "") if version < BY_ID else ("", self.cluster.id_of(topic)) for topic in topics]
        entry = [PartitionToCommit(partition, offset)]
        body = OffsetCommitRequest(GROUP, [TopicToCommit(name, entry, of_id) for name, of_id in named])
        answer = await self.gateway.ask(OFFSET_COMMIT, version, body)
        assert {each.partitions[0].error_code for each in answer.topics} == {ErrorCode.none}

    async def commit_in_transaction(self, topic: str, offset: int) -> None:
        entry = [TxnTopicToCommit(topic, [TxnPartitionToCommit(0, offset)])]
        await self.gateway.ask(TXN_OFFSET_COMMIT, 3, TxnOffsetCommitRequest("x", GROUP, 7, 0, entry))

    async def fetch(self, version: int, topic: str = "t", partition: int = 0) -> int:
        """The offset that a client gets of a partition, -1 for none."""
        name, of_id = (topic, "") if version < BY_ID else ("", self.cluster.id_of(topic))
        topics = [TopicToFetch(name, [partition], of_id)]
        if version <= WITHOUT_GROUPS:
            answer = await self.gateway.ask(OFFSET_FETCH, version, OffsetFetchRequest(GROUP, topics))
        else:
            body = OffsetFetchRequest(groups=[GroupToFetch(GROUP, topics)])
            (answer,) = (await self.gateway.ask(OFFSET_FETCH, version, body)).groups
        (found,) = answer.topics
        return int(found.partitions[0].committed_offset)

    async def all_offsets(self, version: int) -> dict[str, list[int]]:
        """All offsets that a client gets, by the name or the id of their topics."""
        if version <= WITHOUT_GROUPS:
            answer = await self.gateway.ask(OFFSET_FETCH, version, OffsetFetchRequest(GROUP, None))
        else:
            body = OffsetFetchRequest(groups=[GroupToFetch(GROUP, None)])
            (answer,) = (await self.gateway.ask(OFFSET_FETCH, version, body)).groups
        assert answer.error_code is ErrorCode.none
        return {
            str(topic.name) if version < BY_ID else text_of_topic_id(topic.topic_id): [
                each.committed_offset for each in topic.partitions
            ]
            for topic in answer.topics
        }

    async def create_again(self) -> None:
        """Delete ``t`` and create it again without the gateway."""
        self.cluster.create("t", 2)
        await asyncio.sleep(RENEWAL_SECONDS)

    async def delete(self) -> None:
        """Delete ``t`` without the gateway."""
        del self.cluster.topics_now["t"]
        await asyncio.sleep(RENEWAL_SECONDS)


def play(story: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    run_in_virtual_time(story(Scene()))


@pytest.mark.parametrize("committed", [BY_NAME, BY_ID])
@pytest.mark.parametrize("fetched", [1, WITHOUT_GROUPS, BY_NAME, BY_ID])
def test_the_new_topic_has_no_offset_of_its_namesake(committed: int, fetched: int) -> None:
    async def story(scene: Scene) -> None:
        await scene.commit("t", "stays", offset=100, version=committed)
        assert await scene.fetch(fetched) == 100
        await scene.create_again()
        assert await scene.fetch(fetched) == -1
        assert await scene.fetch(fetched, "stays") == 100
        await scene.commit("t", offset=5, version=BY_ID)
        assert await scene.fetch(fetched) == 5

    play(story)


@pytest.mark.parametrize("fetched", [BY_NAME, BY_ID])
def test_an_offset_that_is_pending_in_a_transaction_does_not_land_in_the_new_topic(fetched: int) -> None:
    async def story(scene: Scene) -> None:
        await scene.commit_in_transaction("t", 20)
        await scene.create_again()
        scene.coordinator.group(GROUP).end_transaction(commit=True)
        assert await scene.fetch(fetched) == -1

    play(story)


def test_a_topic_of_which_the_brokers_have_not_heard_yet_keeps_its_offsets() -> None:
    """Kafka's consumer would take no offset for a reason to reset its position."""

    async def story(scene: Scene) -> None:
        await scene.commit("t", offset=100)
        await scene.delete()
        assert await scene.fetch(BY_NAME) == 100

    play(story)


@pytest.mark.parametrize("version", [2, WITHOUT_GROUPS, BY_NAME, BY_ID])
def test_all_offsets_are_those_of_topics_that_exist(version: int) -> None:
    """The brokers answer nothing about the others: kafka-consumer-groups would describe no group at all."""

    async def story(scene: Scene) -> None:
        await scene.commit("t", "stays", offset=100)
        stays = "stays" if version < BY_ID else scene.cluster.id_of("stays")
        await scene.delete()
        assert await scene.all_offsets(version) == {stays: [100]}

    play(story)


@pytest.mark.parametrize("version", [2, WITHOUT_GROUPS, BY_NAME, BY_ID])
def test_all_offsets_are_those_of_the_new_topic(version: int) -> None:
    async def story(scene: Scene) -> None:
        await scene.commit("t", offset=100)
        scene.coordinator.group(GROUP).commit(offsets={("t", 5): 9})
        await scene.create_again()
        await scene.commit("t", offset=7, partition=1, version=BY_ID)
        t = "t" if version < BY_ID else scene.cluster.id_of("t")
        assert await scene.all_offsets(version) == {t: [9, 7]}, "with the one of which no id is known"

    play(story)


def test_the_offsets_of_a_topic_that_is_gone_can_be_deleted() -> None:
    """At a broker they are gone with the topic; without one, a partition of no topic has no offset to delete."""

    async def story(scene: Scene) -> None:
        await scene.commit("t", "stays", offset=100)
        await scene.delete()
        await asyncio.sleep(EXISTING_TTL_SECONDS)
        named = {"t": [0, 1], "stays": [0, 5], "never": [0]}
        topics = [TopicToDelete(name, [PartitionToDelete(each) for each in indexes]) for name, indexes in named.items()]
        answer = await scene.gateway.ask(OFFSET_DELETE, 0, OffsetDeleteRequest(GROUP, topics))
        found = {
            (str(topic.name), each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }
        unknown, none = ErrorCode.unknown_topic_or_partition, ErrorCode.none
        assert found == {
            ("t", 0): none,
            ("t", 1): unknown,
            ("stays", 0): none,
            ("stays", 5): unknown,
            ("never", 0): unknown,
        }
        assert not scene.coordinator.group(GROUP).group.offsets

    play(story)
