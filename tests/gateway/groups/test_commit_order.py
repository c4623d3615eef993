"""Commits of one client reach the log in the order in which the client sent them."""

import asyncio
from collections.abc import Iterator

import msgspec
import pytest
from kio.index import load_request_schema

from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.embedded.broker import EmbeddedBroker
from tests.gateway.support.direct_handlers import connected, direct_handlers
from tests.gateway.support.timeouts import response_timeouts
from tests.support.scripted_coordinator import ScriptedCoordinator
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS
from tests.support.wire_types import to_wire


@pytest.fixture
def scripted(broker: EmbeddedBroker) -> Iterator[ScriptedCoordinator]:
    coordinator = ScriptedCoordinator(broker.bootstrap_servers)
    yield coordinator
    coordinator.close()


def test_a_commit_whose_topics_are_looked_up_is_not_overtaken_by_one_whose_topics_are_known(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator
) -> None:
    known, unknown = unique("known"), unique("unknown")
    for name in (known, unknown):
        create_topic(broker.bootstrap_servers, name, 1)

    def commit(offset: int, *topics: str) -> object:
        named = [TopicToCommit(topic, [PartitionToCommit(0, offset)]) for topic in topics]
        return to_wire(OffsetCommitRequest("group", named, 1, "member"), load_request_schema(8, 8))

    async def offsets_in_log() -> list[int]:
        serving = direct_handlers(broker.bootstrap_servers, scripted.topics, timeouts=response_timeouts())
        async with asyncio.timeout(LIMIT_SECONDS), serving as handlers:
            await connected(handlers.channel)
            requests = [commit(1, known), commit(2, known, unknown), commit(3, known)]
            found = []
            asking = []
            for due in (requests[:1], requests[1:]):
                asking += [asyncio.create_task(handlers.ask(request)) for request in due]
                for _ in due:
                    event = await asyncio.to_thread(scripted.request, "OffsetCommit")
                    body = msgspec.json.decode(event.body, type=OffsetCommitRequest)
                    found.append(body.topics[0].partitions[0].committed_offset)
            for task in asking:
                task.cancel()
            return found

    assert asyncio.run(offsets_in_log()) == [1, 2, 3]
