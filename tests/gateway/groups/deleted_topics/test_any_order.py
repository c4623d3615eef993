"""Topics that are deleted and created again in any order with commits, outages and starts of gateways.

Two things must hold for groups of every type. No client gets, for a topic, an offset that was committed for another
topic of its name. And what was acknowledged for a topic that still exists is not lost.
"""

import asyncio
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from coordinator_logic.messages import (
    GroupToFetch,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    TopicToCommit,
    TopicToFetch,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
)
from streaming.gateway.groups.handlers.topic_check import ID_SECONDS
from streaming.gateway.groups.subscriptions.offset_cleanup import LISTING_SECONDS, SWEEP_SECONDS
from streaming.gateway.security.topic_catalog import RENEWAL_SECONDS
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator
from tests.gateway.groups.driven.member import GatewayMember
from tests.support.properties import examples
from tests.support.virtual_time import run_in_virtual_time

OFFSET_COMMIT, OFFSET_FETCH, TXN_OFFSET_COMMIT = 8, 9, 28
BY_NAME, BY_ID = 9, 10
TOPICS = ("t", "u")
EMPTY, CONSUMERS = "empty", "consumers"


class Step(Enum):
    """What happens next, with a topic and a group."""

    COMMIT_BY_NAME = "a commit by name"
    COMMIT_BY_ID = "a commit by id"
    COMMIT_IN_TRANSACTION = "a commit in a transaction"
    END_TRANSACTION = "the transaction ends"
    DELETE = "the topic is deleted"
    CREATE = "the topic is created, after it was deleted if it existed"
    CHANGE_THROUGH_GATEWAY = "topics change through the gateway"
    START_GATEWAY = "another gateway starts"
    COORDINATOR_GOES = "the coordinator is away"
    COORDINATOR_COMES = "the coordinator is back"
    WAIT_A_MOMENT = "a second passes"
    WAIT_FOR_A_LOOK = "the time from one look to the next passes"


Steps = list[tuple[Step, str, str]]
STEPS = st.lists(
    st.tuples(st.sampled_from(Step), st.sampled_from(TOPICS), st.sampled_from((EMPTY, CONSUMERS))), max_size=30
)


class World:
    """Two groups, two topics, and one gateway after the other. Each write has a greater offset than those before it.

    ``committed`` has the last acknowledged offset of a group in a topic's partition, with the id of its topic.
    """

    def __init__(self) -> None:
        self.cluster = Cluster(**dict.fromkeys(TOPICS, 1))
        self.coordinator = LogicCoordinator()
        self.committed: dict[tuple[str, str], tuple[int, str]] = {}
        self.pending: dict[tuple[str, str], tuple[int, str]] = {}
        self.gateway = Gateway(self.coordinator, self.cluster)
        self._running = asyncio.create_task(self.gateway.cleanup.run())
        self._offset = 0

    async def run(self, steps: Steps) -> None:
        """Take the steps, and check after each of them what clients get."""
        member = GatewayMember(self.gateway, "m", CONSUMERS)
        await member.join(*TOPICS)
        for step, topic, group in steps:
            await self._take(step, topic, group, member)
            await self._check()
        self.coordinator.is_away = False
        # A sweep does not see what is pending in a transaction: the next one finds it.
        await asyncio.sleep(SWEEP_SECONDS + 3 * LISTING_SECONDS)
        await self._check()
        ids = {self.cluster.id_of(name) for name in self.cluster.topics_now}
        for driven in self.coordinator.groups.values():
            for _, _, stored in driven.group.committed_offsets() if driven.exists else ():
                assert stored.topic_id in ids, "an offset of a deleted topic remains"
        self._running.cancel()

    async def _take(self, step: Step, topic: str, group: str, member: GatewayMember) -> None:
        exists, is_away = topic in self.cluster.topics_now, self.coordinator.is_away
        match step:
            case Step.COMMIT_BY_NAME if exists and not is_away:
                # A gateway may know an id for that long that is no longer the topic's.
                await asyncio.sleep(ID_SECONDS)
                await self._commit(group, topic, BY_NAME, member)
            case Step.COMMIT_BY_ID if exists and not is_away:
                await self._commit(group, topic, BY_ID, member)
            case Step.COMMIT_IN_TRANSACTION if exists and not is_away:
                await asyncio.sleep(ID_SECONDS)
                value = self._next(), self.cluster.id_of(topic)
                topics = [TxnTopicToCommit(topic, [TxnPartitionToCommit(0, value[0])])]
                await self.gateway.ask(TXN_OFFSET_COMMIT, 3, TxnOffsetCommitRequest("x", EMPTY, 7, 0, topics))
                self.pending[EMPTY, topic] = value
            case Step.END_TRANSACTION if not is_away and self.coordinator.group(EMPTY).exists:
                self.coordinator.group(EMPTY).end_transaction(commit=True)
                for place, value in self.pending.items():
                    self.committed[place] = max(value, self.committed.get(place, value))
                self.pending = {}
            case Step.DELETE if exists:
                del self.cluster.topics_now[topic]
            case Step.CREATE:
                self.cluster.create(topic, 1)
            case Step.CHANGE_THROUGH_GATEWAY:
                self.gateway.topics_changed()
            case Step.START_GATEWAY:
                self._running.cancel()
                started = Gateway(self.coordinator, self.cluster)
                self.gateway = member.gateway = started
                self._running = asyncio.create_task(started.cleanup.run())
            case Step.COORDINATOR_GOES | Step.COORDINATOR_COMES:
                self.coordinator.is_away = step is Step.COORDINATOR_GOES
            case Step.WAIT_A_MOMENT:
                await asyncio.sleep(1.0)
            case Step.WAIT_FOR_A_LOOK:
                await asyncio.sleep(LISTING_SECONDS)

    def _next(self) -> int:
        self._offset += 1
        return self._offset

    async def _commit(self, group: str, topic: str, version: int, member: GatewayMember) -> None:
        epoch, member_id = -1, ""
        if group == CONSUMERS:
            await member.beat()
            epoch, member_id = member.epoch, member.member_id
        value = self._next(), self.cluster.id_of(topic)
        name, topic_id = (topic, "") if version < BY_ID else ("", value[1])
        topics = [TopicToCommit(name, [PartitionToCommit(0, value[0])], topic_id)]
        answer = await self.gateway.ask(OFFSET_COMMIT, version, OffsetCommitRequest(group, topics, epoch, member_id))
        if answer.topics[0].partitions[0].error_code is ErrorCode.none:
            self.committed[group, topic] = value

    async def _check(self) -> None:
        """Compare what clients get of the topics that exist with what was acknowledged for them."""
        if self.coordinator.is_away:
            return
        await asyncio.sleep(2 * RENEWAL_SECONDS)
        for group in (EMPTY, CONSUMERS):
            for topic in self.cluster.topics_now:
                topic_id = self.cluster.id_of(topic)
                offset, of_id = self.committed.get((group, topic), (-1, topic_id))
                expected = offset if of_id == topic_id else -1
                assert await self._fetch(group, TopicToFetch(topic, [0]), BY_NAME) == expected
                assert await self._fetch(group, TopicToFetch("", [0], topic_id), BY_ID) == expected

    async def _fetch(self, group: str, topic: TopicToFetch, version: int) -> int:
        body = OffsetFetchRequest(groups=[GroupToFetch(group, [topic])])
        (answer,) = (await self.gateway.ask(OFFSET_FETCH, version, body)).groups
        return int(answer.topics[0].partitions[0].committed_offset)


def play(steps: Steps) -> None:
    async def play_in_loop() -> None:
        await World().run(steps)

    run_in_virtual_time(play_in_loop())


@given(steps=STEPS)
@examples(100)
def test_each_topic_has_the_offsets_that_were_acknowledged_for_it(steps: Steps) -> None:
    play(steps)


@pytest.mark.parametrize("group", [EMPTY, CONSUMERS])
@pytest.mark.parametrize("committed", [Step.COMMIT_BY_NAME, Step.COMMIT_BY_ID])
@pytest.mark.parametrize(
    "between", [Step.WAIT_A_MOMENT, Step.WAIT_FOR_A_LOOK, Step.START_GATEWAY, Step.COORDINATOR_GOES]
)
def test_a_topic_that_is_deleted_and_created_again_begins_without_offsets(
    group: str, committed: Step, between: Step
) -> None:
    then = [Step.DELETE, between, Step.CREATE, Step.WAIT_FOR_A_LOOK, Step.COORDINATOR_COMES, committed]
    play([(step, "t", group) for step in (committed, Step.COMMIT_IN_TRANSACTION, *then, Step.END_TRANSACTION)])
