"""Many large answers of a real job, asked for at once: few are in a batch, so that others' requests wait for few."""

import asyncio
from typing import Any

from kio.index import load_request_schema

from coordinator_logic.messages import (
    DescribeGroupsRequest,
    JoinGroupRequest,
    MemberAssignment,
    Message,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    SyncGroupRequest,
    TopicToCommit,
)
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.groups.large_reads import BYTES_AT_ONCE
from tests.gateway.support.direct_handlers import DirectHandlers, direct_handlers, wait_connected
from tests.gateway.support.timeouts import response_timeouts
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.topics import create_topic, unique
from tests.support.wire_types import to_wire

KEYS = {"OffsetCommit": 8, "JoinGroup": 11, "SyncGroup": 14, "DescribeGroups": 15}
LARGE = 1_000_000
ANSWERS, ADDRESSES = 60, 6
SESSION_MS = 600_000


class Asking:
    """Sends requests to handlers, from any address."""

    def __init__(self, handlers: DirectHandlers) -> None:
        self._handlers = handlers
        self.described = 0

    async def ask(self, version: int, body: Message, address: int = 0) -> Any:
        key = KEYS[type(body).__name__.removesuffix("Request")]
        payload = to_wire(body, load_request_schema(key, version))
        return await self._handlers.ask(payload, host=f"10.0.0.{address}")

    async def create_large_group(self, group_id: str) -> None:
        """A group whose description has metadata and an assignment of a megabyte each."""
        join = JoinGroupRequest(group_id, SESSION_MS, "consumer", [Protocol("p", bytes(LARGE))], SESSION_MS)
        joined = await self.ask(3, join)
        assigned = [MemberAssignment(joined.member_id, bytes(LARGE))]
        sync = SyncGroupRequest(group_id, joined.generation_id, joined.member_id, assignments=assigned)
        synced = await self.ask(2, sync)
        assert synced.error_code.name == "none"

    async def describe(self, group_id: str, address: int) -> int:
        """Returns the bytes of the answer's texts, as in the coordinator's answer."""
        answer = await self.ask(5, DescribeGroupsRequest([group_id]), address)
        (member,) = answer.groups[0].members
        self.described += 1
        return (len(member.member_metadata) + len(member.member_assignment)) * 4 // 3

    async def commit(self, group_id: str, topic: str) -> None:
        body = OffsetCommitRequest(group_id, [TopicToCommit(topic, [PartitionToCommit(0, 1)])])
        (committed,) = (await self.ask(8, body)).topics
        assert committed.partitions[0].error_code.name == "none"


def test_many_large_answers_asked_for_at_once_are_spread_over_batches(
    coordinator: CoordinatorProcess, broker: EmbeddedBroker
) -> None:
    topic, large, small = unique("committed"), unique("large"), unique("small")
    create_topic(broker.bootstrap_servers, topic, 1)

    async def run() -> tuple[int, list[int]]:
        timeouts = response_timeouts()
        serving = direct_handlers(coordinator.bootstrap_servers, coordinator.topics, timeouts=timeouts)
        async with serving as handlers:
            await wait_connected(handlers)
            asking = Asking(handlers)
            await asking.create_large_group(large)
            # It shows how large the group is: the directory may not say so yet.
            size = await asking.describe(large, 0)
            reading = [asyncio.create_task(asking.describe(large, n % ADDRESSES)) for n in range(ANSWERS)]
            meanwhile = []
            while not all(each.done() for each in reading):
                before = asking.described
                await asking.commit(small, topic)
                meanwhile.append(asking.described - before)
            await asyncio.gather(*reading)
            return size, meanwhile

    size, meanwhile = asyncio.run(run())
    # A commit is appended during one batch and answered by the next one, and the answers to it come late.
    assert max(meanwhile) <= 3 * (BYTES_AT_ONCE // size)
    assert max(meanwhile) < ANSWERS / 2
