"""Responses while the coordinator is silent, slow or absent, and while it answers errors without a body."""

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from kio.index import load_request_schema

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    GroupToFetch,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    Message,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    PartitionToDelete,
    Protocol,
    RequestEnvelope,
    SyncGroupRequest,
    TopicToCommit,
    TopicToDelete,
    TopicToFetch,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
)
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.groups.timeout_policies import GroupTimeouts
from tests.gateway.groups.topic_ids import ids_of, in_version
from tests.gateway.support.direct_handlers import DirectHandlers, connected, direct_handlers
from tests.gateway.support.timeouts import response_timeouts
from tests.support.scripted_coordinator import ScriptedCoordinator
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS
from tests.support.wire_types import to_wire

LONG = response_timeouts()
"""For requests that are all answered."""

SHORT = response_timeouts(0.5)
"""Too short to be sure that a request is in the log: for tests that do not depend on it."""

LOG_APPEND = response_timeouts(4.0)
"""Long enough for a request to be in the log: a producer's first request takes half a second."""

GROUP = "silent"

NOT_ASKED = {"ListGroups", "DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs", "ListConfigResources"}
"""APIs that need no answer of the coordinator, or of which it has a part only."""


@pytest.fixture(scope="module")
def topic(broker: EmbeddedBroker) -> str:
    name = unique("topic")
    create_topic(broker.bootstrap_servers, name, 1)
    return name


@pytest.fixture
def scripted(broker: EmbeddedBroker) -> Iterator[ScriptedCoordinator]:
    coordinator = ScriptedCoordinator(broker.bootstrap_servers)
    yield coordinator
    coordinator.close()


def requests(topic: str) -> dict[str, Message]:
    """A request of each API."""
    return {
        "JoinGroup": JoinGroupRequest(GROUP, 500, "consumer", [Protocol("range", b"")], 500),
        "SyncGroup": SyncGroupRequest(GROUP, 1, "m", protocol_type="consumer", protocol_name="range"),
        "Heartbeat": HeartbeatRequest(GROUP, 1, "m"),
        "LeaveGroup": LeaveGroupRequest(GROUP, "m", [LeavingMember("m")]),
        "OffsetCommit": OffsetCommitRequest(GROUP, [TopicToCommit(topic, [PartitionToCommit(0, 1)])]),
        "OffsetFetch": OffsetFetchRequest(
            GROUP, [TopicToFetch(topic, [0])], [GroupToFetch(GROUP, [TopicToFetch(topic, [0])])]
        ),
        "DescribeGroups": DescribeGroupsRequest([GROUP]),
        "DeleteGroups": DeleteGroupsRequest([GROUP]),
        "OffsetDelete": OffsetDeleteRequest(GROUP, [TopicToDelete(topic, [PartitionToDelete(0)])]),
        "ConsumerGroupHeartbeat": ConsumerGroupHeartbeatRequest(GROUP, "m", 1, subscribed_topic_names=[topic]),
        "ConsumerGroupDescribe": ConsumerGroupDescribeRequest([GROUP]),
        "TxnOffsetCommit": TxnOffsetCommitRequest(
            "t", GROUP, 1, 0, [TxnTopicToCommit(topic, [TxnPartitionToCommit(0, 1)])]
        ),
    }


def error_codes(response: Any) -> set[str]:
    """The names of all errors in a response, at its top level and in its entries."""
    found = set()
    for name in response.__dataclass_fields__:
        value = getattr(response, name)
        if name == "error_code":
            found.add(value.name)
        elif isinstance(value, tuple):
            found.update(*(error_codes(item) for item in value if hasattr(item, "__dataclass_fields__")))
    return found


def with_handlers(
    broker: EmbeddedBroker,
    topics: TopicNames,
    work: Callable[[DirectHandlers], Any],
    timeouts: GroupTimeouts | None = None,
    *,
    wait_connected: bool = True,
) -> Any:
    """Run ``work`` with handlers for the coordinator of these topics; return its result."""

    async def run() -> Any:
        serving = direct_handlers(broker.bootstrap_servers, topics, timeouts=timeouts)
        async with asyncio.timeout(LIMIT_SECONDS), serving as handlers:
            if wait_connected:
                await connected(handlers.channel)
            return await work(handlers)

    return asyncio.run(run())


async def ask_all_versions(handlers: DirectHandlers, topic: str) -> dict[tuple[str, int], set[str]]:
    """Send every API in every version at once; return the errors of each response by API and version."""
    ids = await ids_of(handlers.cluster, topic)
    asked = {
        (served.name, version): handlers.ask(
            to_wire(in_version(requests(topic)[served.name], version, ids), load_request_schema(key, version))
        )
        for key, served in handlers.apis.items()
        for version in range(served.min_version, served.max_version + 1)
        if served.name not in NOT_ASKED
    }
    responses = await asyncio.gather(*asked.values())
    return dict(zip(asked, map(error_codes, responses), strict=True))


LOADING = "coordinator_load_in_progress"


def test_while_the_coordinator_is_silent_clients_retry_and_members_stay(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator, topic: str
) -> None:
    responses = with_handlers(broker, scripted.topics, lambda handlers: ask_all_versions(handlers, topic), LOG_APPEND)

    errors = {
        api: {frozenset(codes) - {"none"} for (name, _), codes in responses.items() if name == api}
        for api in requests(topic)
    }
    assert errors.pop("Heartbeat") == {frozenset()}
    # All versions are sent at once: a member's further requests wait for room as long as its first has no answer, and
    # are not sent. Once in four runs the first has their error, too: a client retries on both; the cause is not known.
    codes = errors.pop("ConsumerGroupHeartbeat")
    assert {frozenset({"coordinator_not_available"})} <= codes
    assert codes <= {frozenset({"coordinator_not_available"}), frozenset({LOADING})}
    assert errors.pop("SyncGroup") == {frozenset({"rebalance_in_progress"}), frozenset({"coordinator_not_available"})}
    # Producers before 2.0 crash on COORDINATOR_LOAD_IN_PROGRESS.
    assert errors.pop("TxnOffsetCommit") == {frozenset({LOADING}), frozenset({"coordinator_not_available"})}
    assert set(errors) == {
        *("JoinGroup", "LeaveGroup", "OffsetCommit", "OffsetFetch"),
        *("DescribeGroups", "ConsumerGroupDescribe", "DeleteGroups", "OffsetDelete"),
    }
    assert all(codes == {frozenset({LOADING})} for codes in errors.values())


def test_without_a_response_no_partition_is_reported_as_uncommitted(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator, topic: str
) -> None:
    async def ask(handlers: DirectHandlers) -> list[Any]:
        body = requests(topic)["OffsetFetch"]
        asked = [handlers.ask(to_wire(body, load_request_schema(9, version))) for version in range(1, 8)]
        return await asyncio.gather(*asked)

    for response in with_handlers(broker, scripted.topics, ask, SHORT):
        # aiokafka reads the partitions' errors only.
        (partition,) = response.topics[0].partitions
        assert (partition.committed_offset, partition.error_code.name) == (-1, LOADING)


def test_without_the_coordinators_topics_every_request_fails_with_a_retriable_error(
    broker: EmbeddedBroker, topic: str
) -> None:
    missing = TopicNames(unique("missing") + "-")
    errors = with_handlers(broker, missing, lambda handlers: ask_all_versions(handlers, topic), wait_connected=False)

    assert errors["Heartbeat", 4] == {"coordinator_not_available"}
    assert errors["SyncGroup", 5] == {"coordinator_not_available"}
    assert errors["JoinGroup", 9] == errors["OffsetFetch", 9] | {LOADING} - {"none"} == {LOADING}
    assert all(codes - {"none"} for codes in errors.values())


def test_topics_that_are_created_later_are_found(broker: EmbeddedBroker) -> None:
    topics = TopicNames(unique("later") + "-")

    async def create_topics(handlers: DirectHandlers) -> None:
        assert not handlers.channel.is_connected
        for name in (topics.requests, topics.responses):
            await asyncio.to_thread(create_topic, broker.bootstrap_servers, name, 1)
        await connected(handlers.channel)

    with_handlers(broker, topics, create_topics, wait_connected=False)


def test_a_late_error_of_a_heartbeat_is_returned_with_the_next_heartbeat(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator
) -> None:
    beat = to_wire(HeartbeatRequest(GROUP, 1, "m"), load_request_schema(12, 4))
    another = to_wire(HeartbeatRequest(GROUP, 2, "m"), load_request_schema(12, 4))

    async def ask(handlers: DirectHandlers) -> list[str]:
        errors = [(await handlers.ask(beat)).error_code.name]
        late = await asyncio.to_thread(scripted.request, "Heartbeat")
        scripted.answer(late, HeartbeatResponse(Error.REBALANCE_IN_PROGRESS), Error.REBALANCE_IN_PROGRESS)
        # This response arrives behind the late one, in the same partition.
        marker = asyncio.create_task(handlers.ask(another))
        scripted.answer(await asyncio.to_thread(scripted.request, "Heartbeat"), HeartbeatResponse())
        errors.append((await marker).error_code.name)
        errors += [(await handlers.ask(beat)).error_code.name, (await handlers.ask(beat)).error_code.name]
        return errors

    errors = with_handlers(broker, scripted.topics, ask, LOG_APPEND)
    # Without a response, of another generation, the late error, and without a response once more.
    assert errors == ["none", "none", "rebalance_in_progress", "none"]


def test_every_heartbeat_is_appended_to_the_log(broker: EmbeddedBroker, scripted: ScriptedCoordinator) -> None:
    beat = to_wire(HeartbeatRequest(GROUP, 1, "m"), load_request_schema(12, 4))

    async def ask(handlers: DirectHandlers) -> list[RequestEnvelope]:
        for _ in range(3):
            await handlers.ask(beat)
        return [await asyncio.to_thread(scripted.request, "Heartbeat") for _ in range(3)]

    envelopes = with_handlers(broker, scripted.topics, ask, SHORT)
    assert len({envelope.correlation_id for envelope in envelopes}) == 3
    (envelope, *_) = envelopes
    caller = (envelope.client_id, envelope.client_host, envelope.principal)
    assert caller == ("oracle", "/127.0.0.1", "User:ANONYMOUS")


@pytest.mark.parametrize("error", [Error.INVALID_REQUEST, Error.UNSUPPORTED_VERSION, Error.COORDINATOR_NOT_AVAILABLE])
def test_an_error_without_a_body_becomes_an_error_response_of_each_api(
    error: Error, broker: EmbeddedBroker, scripted: ScriptedCoordinator, topic: str
) -> None:
    async def ask(handlers: DirectHandlers) -> dict[tuple[str, int], set[str]]:
        asking = asyncio.create_task(ask_all_versions(handlers, topic))
        while not asking.done():
            request = await asyncio.to_thread(_next_request, scripted)
            if request is not None:
                scripted.answer(request, None, error)
        return await asking

    responses = with_handlers(broker, scripted.topics, ask, LONG)
    for (api, version), codes in responses.items():
        assert error.name.lower() in codes, (api, version)


def _next_request(scripted: ScriptedCoordinator) -> RequestEnvelope | None:
    record = scripted._consumer.poll(0.2)
    return None if record is None else msgspec.json.decode(record.value() or b"", type=RequestEnvelope)


def test_a_request_that_is_too_large_fails_with_an_error_that_is_not_retriable(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator
) -> None:
    large = JoinGroupRequest(GROUP, 30_000, "consumer", [Protocol("range", os.urandom(1_500_000))], 30_000)

    async def ask(handlers: DirectHandlers) -> Any:
        return await handlers.ask(to_wire(large, load_request_schema(11, 9)))

    assert with_handlers(broker, scripted.topics, ask).error_code.name == "unknown_server_error"


def test_a_deletion_that_is_repeated_gets_the_result_of_the_first_one(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator
) -> None:
    delete = to_wire(DeleteGroupsRequest([GROUP]), load_request_schema(42, 2))

    async def ask(handlers: DirectHandlers) -> list[str]:
        errors = [(await handlers.ask(delete)).results[0].error_code.name]
        first = await asyncio.to_thread(scripted.request, "DeleteGroups")
        repeated = asyncio.create_task(handlers.ask(delete))
        # A request of the same client behind the repeated one: had that been appended, it would come first.
        beat = asyncio.create_task(handlers.ask(to_wire(HeartbeatRequest(GROUP, 1, "m"), load_request_schema(12, 4))))
        scripted.answer(await asyncio.to_thread(scripted.request, "Heartbeat"), HeartbeatResponse())
        await beat
        scripted.answer(first, DeleteGroupsResponse([DeletedGroup(GROUP, Error.NONE)]))
        errors.append((await repeated).results[0].error_code.name)
        # Its client has the result: the next request is meant for another group of that name.
        later = asyncio.create_task(handlers.ask(delete))
        second = await asyncio.to_thread(scripted.request, "DeleteGroups")
        scripted.answer(second, DeleteGroupsResponse([DeletedGroup(GROUP, Error.GROUP_ID_NOT_FOUND)]))
        return [*errors, (await later).results[0].error_code.name]

    errors = with_handlers(broker, scripted.topics, ask, LOG_APPEND)
    assert errors == [LOADING, "none", "group_id_not_found"]


def test_a_client_that_disconnects_leaves_nothing_behind_however_long_it_would_have_waited(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator
) -> None:
    body = JoinGroupRequest(GROUP, 10_000, "consumer", [Protocol("range", b"")], 2**31 - 1)

    async def ask(handlers: DirectHandlers) -> None:
        joining = [asyncio.create_task(handlers.ask(to_wire(body, load_request_schema(11, 9)))) for _ in range(3)]
        for _ in joining:
            await asyncio.to_thread(scripted.request, "JoinGroup")
        assert handlers.channel.outstanding == len(joining)
        for join in joining:
            join.cancel()
        while handlers.channel.outstanding:
            await asyncio.sleep(0.01)

    with_handlers(broker, scripted.topics, ask)


def test_responses_for_disconnected_clients_are_dropped(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    beat = to_wire(HeartbeatRequest(GROUP, 1, "m"), load_request_schema(12, 4))
    join = to_wire(requests("t")["JoinGroup"], load_request_schema(11, 9))

    async def ask(handlers: DirectHandlers) -> str:
        disconnected = [asyncio.create_task(handlers.ask(payload)) for payload in (beat, join)]
        unanswered = [await asyncio.to_thread(scripted.request, "Heartbeat", "JoinGroup") for _ in disconnected]
        for task in disconnected:
            task.cancel()
        for request in unanswered:
            scripted.answer(request, None, Error.INVALID_REQUEST)
        connected = asyncio.create_task(handlers.ask(beat))
        scripted.answer(await asyncio.to_thread(scripted.request, "Heartbeat"), HeartbeatResponse())
        error: str = (await connected).error_code.name
        return error

    assert with_handlers(broker, scripted.topics, ask) == "none"
    assert not [record for record in caplog.records if record.name == "asyncio"]
