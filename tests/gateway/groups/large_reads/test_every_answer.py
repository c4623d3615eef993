"""Each API that the gateway answers itself waits for room for its answer, or its answer is small."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as AlteredResource
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.static.primitive import i8

from coordinator_logic.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    GroupToFetch,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    ListGroupsRequest,
    Message,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    PartitionToDelete,
    Protocol,
    SyncGroupRequest,
    TopicToCommit,
    TopicToDelete,
)
from streaming.gateway.groups.handlers.group_configs import RESOURCES_PER_REQUEST, TOO_MANY
from streaming.gateway.proxy.api_policy import API_POLICIES, Treatment
from streaming.gateway.proxy.find_coordinator import find_coordinators
from streaming.gateway.wire.answer_room import NoAnswerRoom, Settle, current_answer_room
from streaming.gateway.wire.api_keys import API_NAMES, api_name
from streaming.gateway.wire.brokers import Address, Broker
from streaming.gateway.wire.client_request import Caller, ClientRequest
from streaming.gateway.wire.codec import KNOWN_VERSIONS
from streaming.gateway.wire.loop_share import LoopShare
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator
from tests.gateway.groups.test_group_config_requests import GROUP, SESSION, altered, described
from tests.gateway.groups.test_group_config_requests import Broker as ConfigsBroker
from tests.gateway.support.direct_handlers import ANONYMOUS, NODE_ID
from tests.support.wire_types import written, written_by_kio

Asked = Message | Any
"""A message, or a request of kio."""

KEYS = {name: key for key, name in API_NAMES.items()}
REPLACED = AlterConfigsRequest(
    resources=(AlteredResource(resource_type=GROUP, resource_name="g", configs=()),), validate_only=False
)
CALLER = Caller("client", "10.0.0.1", ANONYMOUS)
MEMBER: dict[str, Any] = {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer"}
MANY = 5_000

GATED: dict[str, tuple[int, Asked]] = {
    "JoinGroup": (5, JoinGroupRequest("g", member_id="m", protocols=[Protocol("range", b"")], **MEMBER)),
    "SyncGroup": (5, SyncGroupRequest("g", 1, "m")),
    "DescribeGroups": (5, DescribeGroupsRequest(["g"])),
    "ConsumerGroupHeartbeat": (1, ConsumerGroupHeartbeatRequest("g", "m", 3, subscribed_topic_names=["orders"])),
    "ConsumerGroupDescribe": (1, ConsumerGroupDescribeRequest(["g"])),
    "OffsetFetch": (8, OffsetFetchRequest(groups=[GroupToFetch("g")])),
    "OffsetDelete": (0, OffsetDeleteRequest("g", [TopicToDelete("gone", [PartitionToDelete(0)])])),
    "ListGroups": (5, ListGroupsRequest()),
    "FindCoordinator": (4, FindCoordinatorRequest(key_type=i8(0), coordinator_keys=tuple(map(str, range(MANY))))),
    "DescribeConfigs": (4, described("g")),
    "IncrementalAlterConfigs": (1, altered((GROUP, "g", {SESSION: "50000"}))),
    "AlterConfigs": (
        2,
        AlterConfigsRequest(
            resources=(AlteredResource(resource_type=GROUP, resource_name="g", configs=()),), validate_only=False
        ),
    ),
    "ListConfigResources": (1, ListConfigResourcesRequest(resource_types=())),
}
"""A request of each API whose answer may be large: nobody is asked for it before there is room.

The answer to OffsetDelete is small, but not what the gateway asks for it.
"""

OF_REQUEST: dict[str, tuple[int, Message]] = {
    "LeaveGroup": (5, LeaveGroupRequest("g", members=[LeavingMember(f"m-{n}") for n in range(MANY)])),
    "OffsetCommit": (8, OffsetCommitRequest("g", [TopicToCommit("t", [PartitionToCommit(n, 1) for n in range(MANY)])])),
    "OffsetDelete": (0, OffsetDeleteRequest("g", [TopicToDelete("t", [PartitionToDelete(n) for n in range(MANY)])])),
    "DeleteGroups": (2, DeleteGroupsRequest([f"g-{n}" for n in range(MANY)])),
    "Heartbeat": (4, HeartbeatRequest("g", 1, "m")),
}
"""A request of each API whose answer says less of each entry than its request, which counts until it is answered."""

SMALL = {
    "TxnOffsetCommit": "the answer is that to an OffsetCommit",
    "InitProducerId": "it has fields of fixed sizes only",
    "AddOffsetsToTxn": "it has fields of fixed sizes only",
    "EndTxn": "it has fields of fixed sizes only",
    "ApiVersions": "it has an entry for each API",
    "SaslHandshake": "it has the names of the mechanisms",
    "SaslAuthenticate": "it is the broker's, and passed on in pieces",
}


async def passes() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def test_each_answer_of_the_gateway_is_known() -> None:
    own = {Treatment.SERVED, Treatment.RELAYED, Treatment.ANSWERED}
    answered = {api_name(key) for key, policy in API_POLICIES.items() if policy.treatment in own}
    assert {*GATED, *OF_REQUEST, *SMALL} == answered


class Scene:
    """A gateway whose answers have room once the test says so. ``asked`` are those whom it has asked anything."""

    def __init__(self) -> None:
        self.has_room = asyncio.Event()
        self.coordinator = LogicCoordinator()
        self.broker = ConfigsBroker()
        self.gateway = Gateway(self.coordinator, Cluster(orders=1), self._forward)
        self._found: list[str] = []

        async def room(_size: int, _may_park: bool) -> Settle:
            await self.has_room.wait()
            return lambda _size: None

        current_answer_room.set(room)

    async def _forward(self, payload: Any) -> Any:
        if api_name(payload.__api_key__) in GATED:
            return await self.broker.answer(payload)
        return SimpleNamespace(error_code=ErrorCode.security_disabled)

    @property
    def asked(self) -> int:
        """How much was asked of the coordinator and of the broker."""
        return len(self.coordinator.events) + len(self.broker.asked) + len(self._found)

    def ask(self, name: str) -> "asyncio.Task[Any]":
        """Ask for an answer, as the proxy does with a decoded request."""
        version, body = GATED[name]
        handle = self._find if name == "FindCoordinator" else self.gateway.apis[KEYS[name]].handle
        request = ClientRequest(CALLER, NODE_ID, KEYS[name], version, body)
        handled: Coroutine[Any, Any, Any] = handle(request)  # type: ignore[assignment]
        return asyncio.create_task(handled)

    async def _find(self, request: ClientRequest) -> Any:
        def coordinator_of(group_id: str) -> Broker:
            self._found.append(group_id)
            return Broker(1, Address("broker", 9092))

        answer = await find_coordinators(coordinator_of, LoopShare(), request)
        return list(answer.coordinators)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", GATED)
def test_an_answer_that_may_be_large_waits_for_room(name: str) -> None:
    async def run() -> None:
        scene = Scene()
        answer = scene.ask(name)
        await passes()
        assert not answer.done()
        assert scene.asked == 0
        scene.has_room.set()
        await answer
        assert name == "ListGroups" or scene.asked

    asyncio.run(run())


@pytest.mark.parametrize("name", OF_REQUEST)
def test_an_answer_that_waits_for_no_room_is_hardly_larger_than_its_request(name: str) -> None:
    async def run() -> None:
        version, body = OF_REQUEST[name]
        gateway = Gateway(LogicCoordinator(), Cluster(t=MANY))
        answer = await gateway.ask(KEYS[name], version, body)
        asked = written(body, load_request_schema(KEYS[name], version))
        assert len(written_by_kio(answer)) <= 2 * len(asked) + 16

    asyncio.run(run())


@pytest.mark.parametrize("name", [name for name, reason in SMALL.items() if "fixed sizes" in reason])
def test_an_answer_of_fixed_size_has_no_text_and_no_list(name: str) -> None:
    lowest, highest = KNOWN_VERSIONS[KEYS[name]]
    for version in range(lowest, highest + 1):
        schema: Any = load_response_schema(KEYS[name], version)
        types = {field.metadata["kafka_type"] for field in fields(schema)}
        assert types <= {"error_code", "timedelta_i32", "int16", "int64"}


def repeated(name: str) -> Message:
    groups = ["a", "b", "a", "a"]
    if name == "OffsetFetch":
        return OffsetFetchRequest(groups=[GroupToFetch(each) for each in groups])
    return DescribeGroupsRequest(groups) if name == "DescribeGroups" else ConsumerGroupDescribeRequest(groups)


@pytest.mark.parametrize(("name", "version"), [("OffsetFetch", 8), ("DescribeGroups", 5), ("ConsumerGroupDescribe", 1)])
def test_a_group_that_a_request_repeats_is_in_the_answer_once(name: str, version: int) -> None:
    """With its room, too: a short request could name one large group 100,000 times."""

    async def run() -> None:
        gateway = Gateway(LogicCoordinator(), Cluster())
        answer = await gateway.ask(KEYS[name], version, repeated(name))
        assert [group.group_id for group in answer.groups] == ["a", "b"]

    asyncio.run(run())


def sizes_asked(name: str, body: Callable[[], Any], version: int, groups: list[str]) -> list[int]:
    """The rooms that a request asks for, at a coordinator that has these groups with an offset and a configuration."""

    async def run() -> list[int]:
        sizes: list[int] = []
        scene = Scene()
        scene.has_room.set()
        for group in groups:
            commit = OffsetCommitRequest(group, [TopicToCommit("orders", [PartitionToCommit(0, 1)])])
            await scene.gateway.ask(KEYS["OffsetCommit"], 8, commit)
            payload = altered((GROUP, group, {SESSION: "50000"}))
            served = scene.gateway.apis[KEYS["IncrementalAlterConfigs"]]
            await served.handle(ClientRequest(CALLER, NODE_ID, served.key, 1, payload))

        async def room(size: int, _may_park: bool) -> Settle:
            sizes.append(size)
            return lambda _size: None

        current_answer_room.set(room)
        served = scene.gateway.apis[KEYS[name]]
        await served.handle(ClientRequest(CALLER, NODE_ID, served.key, version, body()))
        return sizes

    return asyncio.run(run())


@pytest.mark.parametrize("name", ["ListGroups", "ListConfigResources"])
def test_the_names_of_groups_count_in_a_list_of_them(name: str) -> None:
    version, body = GATED[name]
    long = ["x" * 900, "ä" * 450]
    (short,) = sizes_asked(name, lambda: body, version, ["a", "b"])
    (size,) = sizes_asked(name, lambda: body, version, long)
    assert size == short + sum(len(group.encode()) - 1 for group in long)


def test_resources_beyond_the_room_of_an_answer_are_refused() -> None:
    async def run() -> None:
        scene = Scene()
        parts: list[int] = []

        async def room(size: int, _may_park: bool) -> Settle:
            if len(parts) > 1:
                raise NoAnswerRoom
            return parts.append if size else lambda _size: None

        current_answer_room.set(room)
        names = [f"g-{number}" for number in range(3 * RESOURCES_PER_REQUEST)]
        served = scene.gateway.apis[KEYS["DescribeConfigs"]]
        request = ClientRequest(CALLER, NODE_ID, served.key, 4, described(*names))
        answer: Any = await served.handle(request)
        assert [each.resource_name for each in answer.results] == names
        errors = [(each.error_code.name, each.error_message) for each in answer.results]
        refused = ("coordinator_load_in_progress", TOO_MANY)
        assert errors == [("none", None)] * 2 * RESOURCES_PER_REQUEST + [refused] * RESOURCES_PER_REQUEST
        # Each of the described resources has a setting with a value of five characters, and a synonym.
        assert all(size > RESOURCES_PER_REQUEST * (len(names[0]) + 2 * len(SESSION)) for size in parts)

    asyncio.run(run())
