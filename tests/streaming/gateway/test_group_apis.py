"""The group APIs before a real broker and a real job, beside the broker's own coordinator, in every version."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
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
from streaming.broker import EmbeddedBroker
from streaming.gateway.addresses import coordinator_node
from streaming.gateway.cluster import Cluster
from streaming.gateway.groups import serving_groups
from streaming.gateway.projection import to_wire
from streaming.gateway.request import ServedApi
from tests.oracle.connection import Connections
from tests.oracle.judge import await_coordinators
from tests.streaming.client_support import create_topic, unique
from tests.streaming.coordinator_process import CoordinatorProcess
from tests.streaming.gateway.asked_handlers import AskedHandlers, asked_handlers, wait_connected
from tests.streaming.gateway.granted_patience import grant_patience
from tests.streaming.gateway.in_process import RunningGateway
from tests.streaming.gateway.wire_stories import (
    VERSIONS,
    Conversation,
    life_of_a_group,
    what_is_refused,
)

PARTITIONS = 3
LIMIT_SECONDS = 180.0

Story = Callable[[Conversation, str], Awaitable[None]]


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """Every request here is answered, sooner or later."""
    with pytest.MonkeyPatch.context() as patch:
        grant_patience(patch)
        yield


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as started:
        yield started


@pytest.fixture(scope="module")
def handlers(coordinator: CoordinatorProcess, runner: asyncio.Runner) -> Iterator[AskedHandlers]:
    stack = AsyncExitStack()
    serving = asked_handlers(coordinator.bootstrap_servers, coordinator.topics)
    asked = runner.run(stack.enter_async_context(serving))
    try:
        runner.run(wait_connected(asked))
        yield asked
    finally:
        runner.run(stack.aclose())


@pytest.fixture(scope="module")
def judge(broker: EmbeddedBroker, runner: asyncio.Runner) -> EmbeddedBroker:
    """The broker, when its own coordinator answers."""
    runner.run(await_coordinators(broker.bootstrap_servers))
    return broker


@pytest.fixture(scope="module")
def topic(broker: EmbeddedBroker) -> str:
    name = unique("committed")
    create_topic(broker.bootstrap_servers, name, PARTITIONS)
    return name


@pytest.fixture(scope="module")
def serving(coordinator: CoordinatorProcess) -> Iterator[RunningGateway]:
    """A gateway with its sockets, before the coordinator."""
    stack = AsyncExitStack()

    async def make(cluster: Cluster) -> Mapping[int, ServedApi]:
        def is_coordinator(group_id: str, node_id: int) -> bool:
            return coordinator_node(group_id, cluster.node_ids()) == node_id

        side = await stack.enter_async_context(
            serving_groups(coordinator.bootstrap_servers, coordinator.topics, "serving", {}, is_coordinator)
        )
        await side.channel.wait_connected()
        return side.apis

    running = RunningGateway(coordinator.bootstrap_servers, make)
    try:
        running.start()
        yield running
        running.call(stack.aclose())
    finally:
        running.stop()


@pytest.mark.parametrize("story", [life_of_a_group, what_is_refused])
def test_every_version_is_answered_as_by_the_broker(
    story: Story, serving: RunningGateway, runner: asyncio.Runner, judge: EmbeddedBroker, topic: str
) -> None:
    group_id = unique("story")

    async def tell() -> tuple[list[Conversation], list[Conversation]]:
        gateway, broker = Connections(serving.bootstrap_servers), Connections(judge.bootstrap_servers)
        try:
            ours = [Conversation(gateway.ask, version, f"{group_id}-{version}") for version in VERSIONS]
            theirs = [Conversation(broker.ask, version, f"{group_id}-{version}") for version in VERSIONS]
            async with asyncio.timeout(LIMIT_SECONDS):
                await asyncio.gather(*(story(told, topic) for told in (*ours, *theirs)))
        finally:
            gateway.close()
            broker.close()
        return ours, theirs

    for ours, theirs in zip(*runner.run(tell()), strict=True):
        assert ours.said == theirs.said


async def committed(handlers: AskedHandlers, topic: str, group_ids: Sequence[str]) -> None:
    """Make groups with an offset each."""
    told = [Conversation(handlers.ask, 8, group_id) for group_id in group_ids]
    await asyncio.gather(*(story.note("OffsetCommit", story.commit_request({topic: [0]})) for story in told))


def newest(body: Any, key: int, version: int) -> Any:
    return to_wire(body, load_request_schema(key, version))


def test_requests_about_several_groups_are_answered_in_their_order(
    handlers: AskedHandlers, runner: asyncio.Runner, topic: str
) -> None:
    group_ids = [unique("several") for _ in range(5)]
    present, absent = group_ids[:3], group_ids[3:]
    asked = [absent[0], *present, absent[1]]

    async def ask() -> tuple[Any, Any, Any]:
        await committed(handlers, topic, present)
        groups = [GroupToFetch(group_id, [TopicToFetch(topic, [0, 1])]) for group_id in asked]
        fetched = await handlers.ask(newest(OffsetFetchRequest(groups=groups), 9, 9))
        described = await handlers.ask(newest(DescribeGroupsRequest(asked), 15, 6))
        twice = tuple(GroupId(group_id) for group_id in (*asked, *present))
        return fetched, described, await handlers.ask(WireDeleteGroupsRequest(groups_names=twice))

    fetched, described, deleted = runner.run(ask())

    assert [group.group_id for group in fetched.groups] == asked
    offsets = [[p.committed_offset for p in group.topics[0].partitions] for group in fetched.groups]
    assert offsets == [[-1, -1], [100, -1], [100, -1], [100, -1], [-1, -1]]
    assert [group.group_id for group in described.groups] == asked
    assert [group.group_state for group in described.groups] == ["Dead", "Empty", "Empty", "Empty", "Dead"]
    assert [group.group_id for group in deleted.results] == asked
    errors = [result.error_code.name for result in deleted.results]
    assert errors == ["group_id_not_found", "none", "none", "none", "group_id_not_found"]


def test_each_broker_lists_the_groups_that_it_stands_for_until_they_are_deleted(
    coordinator: CoordinatorProcess, runner: asyncio.Runner, topic: str
) -> None:
    prefix = unique("listed")
    group_ids = [f"{prefix}-{number}" for number in range(4)]

    async def listed(asked: AskedHandlers, node_id: int, **filters: Any) -> list[str]:
        request = ListGroupsRequest(**({"states_filter": (), "types_filter": ()} | filters))
        answer = await asked.ask(request, node_id=node_id)
        assert answer.error_code.name == "none"
        return sorted(group.group_id for group in answer.groups if group.group_id.startswith(prefix))

    async def until(asked: AskedHandlers, wanted: list[str], node_id: int) -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            while await listed(asked, node_id) != wanted:
                await asyncio.sleep(0.05)

    async def look() -> tuple[list[str], list[str]]:
        serving = asked_handlers(
            coordinator.bootstrap_servers, coordinator.topics, lambda group, node: group.endswith(str(node))
        )
        async with serving as asked:
            await wait_connected(asked)
            await committed(asked, topic, group_ids)
            for node_id in range(4):
                await until(asked, [group_ids[node_id]], node_id)
            filtered = (
                await listed(asked, 1, states_filter=("Empty",), types_filter=("classic",)),
                await listed(asked, 1, states_filter=("Stable",)),
            )
            await asked.ask(WireDeleteGroupsRequest(groups_names=(GroupId(group_ids[1]),)))
            await until(asked, [], 1)
            return filtered

    assert runner.run(look()) == ([group_ids[1]], [])


def test_authorized_operations_are_told_when_they_are_asked_for(
    handlers: AskedHandlers, runner: asyncio.Runner, judge: EmbeddedBroker, topic: str
) -> None:
    group_id = unique("operations")

    async def ask() -> list[tuple[Any, Any]]:
        connections = Connections(judge.bootstrap_servers)
        answers = []
        try:
            for asked in (handlers.ask, connections.ask):
                story = Conversation(asked, 8, group_id)
                await story.note("OffsetCommit", story.commit_request({topic: [0]}))
                answers.append(
                    tuple(
                        [
                            (await asked(newest(DescribeGroupsRequest([group_id], wanted), 15, 6)))
                            .groups[0]
                            .authorized_operations
                            for wanted in (False, True)
                        ]
                    )
                )
        finally:
            connections.close()
        return answers

    ours, theirs = runner.run(ask())
    assert ours == theirs
    assert ours[0] != ours[1]
