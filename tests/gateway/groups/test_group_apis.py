"""The group APIs with a real broker and a real job, compared with the broker's own coordinator in every version."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest as WireDeleteGroupsRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.types import GroupId

from coordinator_logic.messages import (
    DescribeGroupsRequest,
    GroupToFetch,
    OffsetFetchRequest,
    TopicToFetch,
)
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.groups.backend import IsCoordinator
from streaming.gateway.proxy.addresses import coordinator_node
from streaming.gateway.proxy.cluster import Cluster
from tests.gateway.support.conversations import (
    VERSIONS,
    Conversation,
    group_lifecycle,
    refused_requests,
)
from tests.gateway.support.direct_handlers import DirectHandlers, direct_handlers, wait_connected
from tests.gateway.support.in_process import RunningGateway, serving_gateway
from tests.gateway.support.timeouts import response_timeouts
from tests.oracle.reference_broker import await_coordinators
from tests.oracle.sides.connection import Connections
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.topics import create_topic, unique
from tests.support.wire_types import to_wire

PARTITIONS = 3
LIMIT_SECONDS = 180.0
TIMEOUTS = response_timeouts()
"""Every request here is answered, however slow the machine is."""

Scenario = Callable[[Conversation, str], Awaitable[None]]


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as started:
        yield started


@pytest.fixture(scope="module")
def handlers(coordinator: CoordinatorProcess, runner: asyncio.Runner) -> Iterator[DirectHandlers]:
    stack = AsyncExitStack()
    serving = direct_handlers(coordinator.bootstrap_servers, coordinator.topics, timeouts=TIMEOUTS)
    direct = runner.run(stack.enter_async_context(serving))
    try:
        runner.run(wait_connected(direct))
        yield direct
    finally:
        runner.run(stack.aclose())


@pytest.fixture(scope="module")
def reference_broker(broker: EmbeddedBroker, runner: asyncio.Runner) -> EmbeddedBroker:
    """The broker, once its own coordinator answers."""
    runner.run(await_coordinators(broker.bootstrap_servers))
    return broker


@pytest.fixture(scope="module")
def topic(broker: EmbeddedBroker) -> str:
    name = unique("committed")
    create_topic(broker.bootstrap_servers, name, PARTITIONS)
    return name


@pytest.fixture(scope="module")
def serving(coordinator: CoordinatorProcess) -> Iterator[RunningGateway]:
    """A gateway that advertises the coordinator of each group at one of the brokers."""

    def at_its_node(cluster: Cluster) -> IsCoordinator:
        return lambda group_id, node_id: coordinator_node(group_id, cluster.node_ids()) == node_id

    with serving_gateway(coordinator, at_its_node) as running:
        yield running


@pytest.mark.parametrize("scenario", [group_lifecycle, refused_requests])
def test_every_version_is_answered_as_by_the_broker(
    scenario: Scenario, serving: RunningGateway, runner: asyncio.Runner, reference_broker: EmbeddedBroker, topic: str
) -> None:
    group_id = unique("scenario")

    async def play() -> tuple[list[Conversation], list[Conversation]]:
        gateway, broker = Connections(serving.bootstrap_servers), Connections(reference_broker.bootstrap_servers)
        try:
            ours = [Conversation(gateway.ask, version, f"{group_id}-{version}") for version in VERSIONS]
            theirs = [Conversation(broker.ask, version, f"{group_id}-{version}") for version in VERSIONS]
            async with asyncio.timeout(LIMIT_SECONDS):
                await asyncio.gather(*(scenario(conversation, topic) for conversation in (*ours, *theirs)))
        finally:
            gateway.close()
            broker.close()
        return ours, theirs

    for ours, theirs in zip(*runner.run(play()), strict=True):
        assert ours.responses == theirs.responses


async def commit_offsets(handlers: DirectHandlers, topic: str, group_ids: Sequence[str]) -> None:
    """Create groups with one committed offset each."""
    conversations = [Conversation(handlers.ask, 8, group_id) for group_id in group_ids]
    await asyncio.gather(*(each.record("OffsetCommit", each.commit_request({topic: [0]})) for each in conversations))


def wire_request(body: Any, key: int, version: int) -> Any:
    return to_wire(body, load_request_schema(key, version))


def test_requests_about_several_groups_are_answered_in_their_order(
    handlers: DirectHandlers, runner: asyncio.Runner, topic: str
) -> None:
    group_ids = [unique("several") for _ in range(5)]
    present, absent = group_ids[:3], group_ids[3:]
    requested = [absent[0], *present, absent[1]]

    async def ask() -> tuple[Any, Any, Any]:
        await commit_offsets(handlers, topic, present)
        groups = [GroupToFetch(group_id, [TopicToFetch(topic, [0, 1])]) for group_id in requested]
        fetched = await handlers.ask(wire_request(OffsetFetchRequest(groups=groups), 9, 9))
        described = await handlers.ask(wire_request(DescribeGroupsRequest(requested), 15, 6))
        twice = tuple(GroupId(group_id) for group_id in (*requested, *present))
        return fetched, described, await handlers.ask(WireDeleteGroupsRequest(groups_names=twice))

    fetched, described, deleted = runner.run(ask())

    assert [group.group_id for group in fetched.groups] == requested
    offsets = [[p.committed_offset for p in group.topics[0].partitions] for group in fetched.groups]
    assert offsets == [[-1, -1], [100, -1], [100, -1], [100, -1], [-1, -1]]
    assert [group.group_id for group in described.groups] == requested
    assert [group.group_state for group in described.groups] == ["Dead", "Empty", "Empty", "Empty", "Dead"]
    assert [group.group_id for group in deleted.results] == requested
    errors = [result.error_code.name for result in deleted.results]
    assert errors == ["group_id_not_found", "none", "none", "none", "group_id_not_found"]


def test_each_broker_lists_the_groups_that_it_coordinates_until_they_are_deleted(
    coordinator: CoordinatorProcess, runner: asyncio.Runner, topic: str
) -> None:
    prefix = unique("listed")
    group_ids = [f"{prefix}-{number}" for number in range(4)]

    async def listed(handlers: DirectHandlers, node_id: int, **filters: Any) -> list[str]:
        request = ListGroupsRequest(**({"states_filter": (), "types_filter": ()} | filters))
        answer = await handlers.ask(request, node_id=node_id)
        assert answer.error_code.name == "none"
        return sorted(group.group_id for group in answer.groups if group.group_id.startswith(prefix))

    async def await_listing(handlers: DirectHandlers, expected: list[str], node_id: int) -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            while await listed(handlers, node_id) != expected:
                await asyncio.sleep(0.05)

    async def list_and_delete() -> tuple[list[str], list[str]]:
        serving = direct_handlers(
            coordinator.bootstrap_servers, coordinator.topics, lambda group, node: group.endswith(str(node)), TIMEOUTS
        )
        async with serving as handlers:
            await wait_connected(handlers)
            await commit_offsets(handlers, topic, group_ids)
            for node_id in range(4):
                await await_listing(handlers, [group_ids[node_id]], node_id)
            filtered = (
                await listed(handlers, 1, states_filter=("Empty",), types_filter=("classic",)),
                await listed(handlers, 1, states_filter=("Stable",)),
            )
            await handlers.ask(WireDeleteGroupsRequest(groups_names=(GroupId(group_ids[1]),)))
            await await_listing(handlers, [], 1)
            return filtered

    assert runner.run(list_and_delete()) == ([group_ids[1]], [])


def test_authorized_operations_are_returned_on_request(
    handlers: DirectHandlers, runner: asyncio.Runner, reference_broker: EmbeddedBroker, topic: str
) -> None:
    group_id = unique("operations")

    async def compare() -> list[tuple[Any, Any]]:
        connections = Connections(reference_broker.bootstrap_servers)
        answers = []
        try:
            for ask in (handlers.ask, connections.ask):
                conversation = Conversation(ask, 8, group_id)
                await conversation.record("OffsetCommit", conversation.commit_request({topic: [0]}))
                answers.append(
                    tuple(
                        [
                            (await ask(wire_request(DescribeGroupsRequest([group_id], wanted), 15, 6)))
                            .groups[0]
                            .authorized_operations
                            for wanted in (False, True)
                        ]
                    )
                )
        finally:
            connections.close()
        return answers

    ours, theirs = runner.run(compare())
    assert ours == theirs
    assert ours[0] != ours[1]
