"""Every group learns of deleted topics: of any type, with and without members, served by this gateway or by none."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from streaming.gateway.groups.subscriptions.offset_cleanup import RETRY_SECONDS, SWEEP_SECONDS
from streaming.gateway.groups.subscriptions.topic_notifier import GONE_AFTER_SECONDS
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator, topic_id
from tests.gateway.groups.driven.member import GatewayMember
from tests.logic.driver import Joined, reading
from tests.support.virtual_time import run_in_virtual_time

STOPPED, LIVE, CONSUMERS, UNSERVED = "stopped", "live", "consumers", "served by no gateway"


class Scene:
    """Groups that have committed offset 20 of two partitions of ``t``, and offset 1 of ``stays``."""

    def __init__(self) -> None:
        self.cluster = Cluster(t=2, stays=1)
        self.coordinator = LogicCoordinator()
        self.gateway = Gateway(self.coordinator, self.cluster)
        self.old = self.cluster.id_of("t")

    async def prepare(self) -> None:
        """Create the groups, and let the gateway list the topics."""
        consumer = GatewayMember(self.gateway, "m", CONSUMERS)
        await consumer.join("t")
        member = Joined("m", consumer.epoch)
        for group_id, sender in ((STOPPED, None), (LIVE, None), (UNSERVED, None), (CONSUMERS, member)):
            group = self.coordinator.group(group_id)
            group.commit(sender, {("stays", 0): 1}, topic_id=self.cluster.id_of("stays"))
            group.commit(sender, {("t", 0): 20, ("t", 1): 20}, topic_id=self.old)
            assert len(self.offsets(group_id)) == 3
        self.coordinator.group(LIVE).join(version=3, protocols=reading("t"))
        await self.gateway.cleanup.look()

    async def look_twice(self) -> None:
        """Look, and look again after the time for which a topic must be missing."""
        await self.gateway.cleanup.look()
        await asyncio.sleep(GONE_AFTER_SECONDS)
        await self.gateway.cleanup.look()

    def offsets(self, group_id: str) -> dict[tuple[str, int], int]:
        """The committed offsets of a group."""
        committed = self.coordinator.group(group_id).group.committed_offsets()
        return {(topic, partition): each.offset for topic, partition, each in committed}


def play(story: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def prepared() -> None:
        scene = Scene()
        await scene.prepare()
        await story(scene)

    run_in_virtual_time(prepared())


@pytest.mark.parametrize("created_again", [False, True])
def test_all_groups_delete_the_offsets_of_a_deleted_topic(created_again: bool) -> None:
    async def story(scene: Scene) -> None:
        if created_again:
            scene.cluster.create("t", 2)
        else:
            del scene.cluster.topics_now["t"]
        await scene.look_twice()
        for group_id in (STOPPED, LIVE, UNSERVED, CONSUMERS):
            assert scene.offsets(group_id) == {("stays", 0): 1}, group_id

    play(story)


def test_the_word_is_of_the_old_topic_and_spares_the_new_one() -> None:
    async def story(scene: Scene) -> None:
        scene.cluster.create("t", 2)
        group = scene.coordinator.group(STOPPED)
        group.commit(offsets={("t", 1): 3}, topic_id=scene.cluster.id_of("t"))
        group.commit_in_transaction({("t", 0): 40}, topic_id=scene.old)
        group.commit_in_transaction({("t", 0): 4}, topic_id=scene.cluster.id_of("t"), producer_id=8)
        await scene.look_twice()
        group.end_transaction(commit=True)
        assert scene.offsets(STOPPED) == {("stays", 0): 1, ("t", 1): 3}
        group.end_transaction(commit=True, producer_id=8)
        assert scene.offsets(STOPPED) == {("stays", 0): 1, ("t", 1): 3, ("t", 0): 4}
        sent = len(scene.coordinator.events)
        await scene.look_twice()
        assert len(scene.coordinator.events) == sent, "each group is told once"

    play(story)


def test_a_topic_that_a_lagging_broker_did_not_know_keeps_its_offsets() -> None:
    async def story(scene: Scene) -> None:
        topic = scene.cluster.topics_now.pop("t")
        await scene.gateway.cleanup.look()
        await asyncio.sleep(GONE_AFTER_SECONDS)
        scene.cluster.topics_now["t"] = topic
        await scene.look_twice()
        assert scene.offsets(STOPPED)["t", 0] == 20

    play(story)


def test_a_topic_that_the_gateway_may_describe_no_longer_keeps_its_offsets() -> None:
    async def story(scene: Scene) -> None:
        del scene.cluster.topics_now["t"]
        scene.cluster.hidden.add("t")
        await scene.look_twice()
        await scene.gateway.cleanup.sweep()
        assert scene.offsets(STOPPED)["t", 0] == 20

    play(story)


def test_groups_that_do_not_answer_are_told_again() -> None:
    async def story(scene: Scene) -> None:
        del scene.cluster.topics_now["t"]
        scene.coordinator.is_away = True
        await scene.look_twice()
        scene.coordinator.is_away = False
        assert scene.offsets(STOPPED)["t", 0] == 20
        await scene.gateway.cleanup.look()
        assert scene.offsets(STOPPED) == {("stays", 0): 1}

    play(story)


# ---- sweeps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("created_again", [False, True])
def test_a_gateway_that_starts_finds_what_was_deleted_while_none_ran(created_again: bool) -> None:
    async def story(scene: Scene) -> None:
        if created_again:
            scene.cluster.create("t", 2)
            scene.coordinator.group(LIVE).commit(offsets={("t", 1): 5}, topic_id=scene.cluster.id_of("t"))
        else:
            del scene.cluster.topics_now["t"]
        running = asyncio.create_task(Gateway(scene.coordinator, scene.cluster).cleanup.run())
        await asyncio.sleep(2 * GONE_AFTER_SECONDS)
        running.cancel()
        for group_id in (STOPPED, UNSERVED, CONSUMERS):
            assert scene.offsets(group_id) == {("stays", 0): 1}, group_id

    play(story)


def test_an_offset_without_an_id_is_not_swept() -> None:
    """Clients over topics may commit offsets of what is no topic of the cluster."""

    async def story(scene: Scene) -> None:
        scene.coordinator.group(STOPPED).commit(offsets={("rows of a table", 0): 7})
        await scene.gateway.cleanup.sweep()
        assert scene.offsets(STOPPED)["rows of a table", 0] == 7

    play(story)


def test_a_sweep_asks_again_who_did_not_answer_and_later_everybody() -> None:
    async def story(scene: Scene) -> None:
        scene.coordinator.is_away = True
        del scene.cluster.topics_now["t"]
        running = asyncio.create_task(Gateway(scene.coordinator, scene.cluster).cleanup.run())
        await asyncio.sleep(RETRY_SECONDS)
        scene.coordinator.is_away = False
        await asyncio.sleep(2 * RETRY_SECONDS)
        assert scene.offsets(STOPPED) == {("stays", 0): 1}
        swept = len(scene.coordinator.sent("OffsetFetch"))
        await asyncio.sleep(RETRY_SECONDS)
        assert len(scene.coordinator.sent("OffsetFetch")) == swept
        scene.coordinator.group(STOPPED).commit(offsets={("t", 0): 9}, topic_id=topic_id(77))
        await asyncio.sleep(SWEEP_SECONDS + RETRY_SECONDS)
        assert scene.offsets(STOPPED) == {("stays", 0): 1}
        running.cancel()

    play(story)
