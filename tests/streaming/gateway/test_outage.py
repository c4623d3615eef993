"""What clients are told while the coordinator is silent, slow or not there, and what its errors look like."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from kio.index import load_request_schema

from coordinator_logic.errors import Error
from coordinator_logic.handlers import APIS
from coordinator_logic.messages import (
    DeleteGroupsRequest,
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
from streaming.broker import EmbeddedBroker
from streaming.gateway import errors
from streaming.gateway.projection import to_wire
from streaming.topics import TopicNames
from tests.streaming.client_support import PlayedCoordinator, create_topic, unique
from tests.streaming.gateway.asked_handlers import AskedHandlers, asked_handlers
from tests.streaming.gateway.granted_patience import grant_patience

LIMIT_SECONDS = 60.0
SHORT_SECONDS = 0.5
APPENDED_SECONDS = 4.0
"""In this time a request comes into the log; a producer's first one takes half a second."""
GROUP = "silent"


@pytest.fixture(scope="module")
def topic(broker: EmbeddedBroker) -> str:
    name = unique("topic")
    create_topic(broker.bootstrap_servers, name, 1)
    return name


@pytest.fixture
def played(broker: EmbeddedBroker) -> Iterator[PlayedCoordinator]:
    coordinator = PlayedCoordinator(broker.bootstrap_servers)
    yield coordinator
    coordinator.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are waited for, since all come."""
    grant_patience(monkeypatch)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are waited for half a second; whether a request is in the log by then is not for a test to say."""
    grant_patience(monkeypatch, SHORT_SECONDS)


@pytest.fixture
def hardly_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are waited for until a request is in the log, and not for ever."""
    grant_patience(monkeypatch, APPENDED_SECONDS)


def requests(topic: str) -> dict[str, Message]:
    """One of each API."""
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
        "TxnOffsetCommit": TxnOffsetCommitRequest(
            "t", GROUP, 1, 0, [TxnTopicToCommit(topic, [TxnPartitionToCommit(0, 1)])]
        ),
    }


def error_codes(answer: Any) -> set[str]:
    """The names of all errors in an answer, at its top and in its entries."""
    found = set()
    for name in answer.__dataclass_fields__:
        value = getattr(answer, name)
        if name == "error_code":
            found.add(value.name)
        elif isinstance(value, tuple):
            found.update(*(error_codes(item) for item in value if hasattr(item, "__dataclass_fields__")))
    return found


def with_handlers(
    broker: EmbeddedBroker, topics: TopicNames, work: Callable[[AskedHandlers], Any], *, connected: bool = True
) -> Any:
    async def run() -> Any:
        async with asyncio.timeout(LIMIT_SECONDS), asked_handlers(broker.bootstrap_servers, topics) as handlers:
            if connected:
                await handlers.channel.wait_connected()
            return await work(handlers)

    return asyncio.run(run())


async def ask_all_versions(handlers: AskedHandlers, topic: str) -> dict[tuple[str, int], set[str]]:
    """Every API in every version at once; the errors of each answer."""
    asked = {
        (served.name, version): handlers.ask(to_wire(requests(topic)[served.name], load_request_schema(key, version)))
        for key, served in handlers.apis.items()
        for version in range(served.min_version, served.max_version + 1)
        if served.name != "ListGroups"
    }
    answers = await asyncio.gather(*asked.values())
    return dict(zip(asked, map(error_codes, answers), strict=True))


LOADING = "coordinator_load_in_progress"


def test_a_silent_coordinator_makes_every_client_wait_and_keeps_its_members(
    broker: EmbeddedBroker, played: PlayedCoordinator, hardly_patient: None, topic: str
) -> None:
    answers = with_handlers(broker, played.topics, lambda handlers: ask_all_versions(handlers, topic))

    told = {
        api: {frozenset(codes) - {"none"} for (name, _), codes in answers.items() if name == api}
        for api in requests(topic)
    }
    assert told.pop("Heartbeat") == {frozenset()}
    assert told.pop("SyncGroup") == {frozenset({"rebalance_in_progress"})}
    # Old producers crash over the other one.
    assert told.pop("TxnOffsetCommit") == {frozenset({LOADING}), frozenset({"coordinator_not_available"})}
    assert set(told) == {
        *("JoinGroup", "LeaveGroup", "OffsetCommit", "OffsetFetch"),
        *("DescribeGroups", "DeleteGroups", "OffsetDelete"),
    }
    assert all(codes == {frozenset({LOADING})} for codes in told.values())


def test_offsets_are_never_said_to_be_none_when_nobody_knows(
    broker: EmbeddedBroker, played: PlayedCoordinator, impatient: None, topic: str
) -> None:
    async def ask(handlers: AskedHandlers) -> list[Any]:
        body = requests(topic)["OffsetFetch"]
        asked = [handlers.ask(to_wire(body, load_request_schema(9, version))) for version in range(1, 8)]
        return await asyncio.gather(*asked)

    for answer in with_handlers(broker, played.topics, ask):
        # aiokafka looks at the partitions only.
        (partition,) = answer.topics[0].partitions
        assert (partition.committed_offset, partition.error_code.name) == (-1, LOADING)


def test_without_the_coordinators_topics_no_request_is_lost_unnoticed(broker: EmbeddedBroker, topic: str) -> None:
    missing = TopicNames(unique("missing") + "-")
    answers = with_handlers(broker, missing, lambda handlers: ask_all_versions(handlers, topic), connected=False)

    assert answers["Heartbeat", 4] == {"coordinator_not_available"}
    assert answers["SyncGroup", 5] == {"coordinator_not_available"}
    assert answers["JoinGroup", 9] == answers["OffsetFetch", 9] | {LOADING} - {"none"} == {LOADING}
    assert all(codes - {"none"} for codes in answers.values())


def test_topics_that_come_later_are_found(broker: EmbeddedBroker) -> None:
    topics = TopicNames(unique("later") + "-")

    async def look(handlers: AskedHandlers) -> None:
        assert not handlers.channel.is_connected
        for name in (topics.requests, topics.responses):
            await asyncio.to_thread(create_topic, broker.bootstrap_servers, name, 1)
        await handlers.channel.wait_connected()

    with_handlers(broker, topics, look, connected=False)


def test_a_late_answer_to_a_heartbeat_is_told_with_the_next_one(
    broker: EmbeddedBroker, played: PlayedCoordinator, hardly_patient: None
) -> None:
    beat = to_wire(HeartbeatRequest(GROUP, 1, "m"), load_request_schema(12, 4))
    another = to_wire(HeartbeatRequest(GROUP, 2, "m"), load_request_schema(12, 4))

    async def ask(handlers: AskedHandlers) -> list[str]:
        told = [(await handlers.ask(beat)).error_code.name]
        late = await asyncio.to_thread(played.request, "Heartbeat")
        played.answer(late, HeartbeatResponse(Error.REBALANCE_IN_PROGRESS), Error.REBALANCE_IN_PROGRESS)
        # The next answers come behind it, in the same partition.
        marker = asyncio.create_task(handlers.ask(another))
        played.answer(await asyncio.to_thread(played.request, "Heartbeat"), HeartbeatResponse())
        told.append((await marker).error_code.name)
        told += [(await handlers.ask(beat)).error_code.name, (await handlers.ask(beat)).error_code.name]
        return told

    # A blind answer, one of another generation, the late one, and a blind one again.
    assert with_handlers(broker, played.topics, ask) == ["none", "none", "rebalance_in_progress", "none"]


def test_every_heartbeat_is_in_the_log_also_when_its_answer_is_known(
    broker: EmbeddedBroker, played: PlayedCoordinator, impatient: None
) -> None:
    beat = to_wire(HeartbeatRequest(GROUP, 1, "m"), load_request_schema(12, 4))

    async def ask(handlers: AskedHandlers) -> list[RequestEnvelope]:
        for _ in range(3):
            await handlers.ask(beat)
        return [await asyncio.to_thread(played.request, "Heartbeat") for _ in range(3)]

    envelopes = with_handlers(broker, played.topics, ask)
    assert len({envelope.correlation_id for envelope in envelopes}) == 3
    (envelope, *_) = envelopes
    told = (envelope.client_id, envelope.client_host, envelope.principal)
    assert told == ("oracle", "/127.0.0.1", "User:ANONYMOUS")


@pytest.mark.parametrize("error", [Error.INVALID_REQUEST, Error.UNSUPPORTED_VERSION, Error.COORDINATOR_NOT_AVAILABLE])
def test_an_error_without_a_body_is_put_into_the_shape_of_each_api(
    error: Error, broker: EmbeddedBroker, played: PlayedCoordinator, patient: None, topic: str
) -> None:
    async def ask(handlers: AskedHandlers) -> dict[tuple[str, int], set[str]]:
        asking = asyncio.create_task(ask_all_versions(handlers, topic))
        while not asking.done():
            request = await asyncio.to_thread(_next_request, played)
            if request is not None:
                played.answer(request, None, error)
        return await asking

    answers = with_handlers(broker, played.topics, ask)
    for (api, version), codes in answers.items():
        assert error.name.lower() in codes, (api, version)


def _next_request(played: PlayedCoordinator) -> RequestEnvelope | None:
    record = played._consumer.poll(0.2)
    return None if record is None else msgspec.json.decode(record.value() or b"", type=RequestEnvelope)


def test_a_request_that_is_too_large_is_refused_for_good(broker: EmbeddedBroker, played: PlayedCoordinator) -> None:
    large = JoinGroupRequest(GROUP, 30_000, "consumer", [Protocol("range", b"x" * 1_500_000)], 30_000)

    async def ask(handlers: AskedHandlers) -> Any:
        return await handlers.ask(to_wire(large, load_request_schema(11, 9)))

    assert with_handlers(broker, played.topics, ask).error_code.name == "unknown_server_error"


def test_answers_of_clients_that_are_gone_harm_nobody(
    broker: EmbeddedBroker, played: PlayedCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    beat = to_wire(HeartbeatRequest(GROUP, 1, "m"), load_request_schema(12, 4))
    join = to_wire(requests("t")["JoinGroup"], load_request_schema(11, 9))

    async def ask(handlers: AskedHandlers) -> str:
        gone = [asyncio.create_task(handlers.ask(payload)) for payload in (beat, join)]
        left = [await asyncio.to_thread(played.request, "Heartbeat", "JoinGroup") for _ in gone]
        for task in gone:
            task.cancel()
        for request in left:
            played.answer(request, None, Error.INVALID_REQUEST)
        staying = asyncio.create_task(handlers.ask(beat))
        played.answer(await asyncio.to_thread(played.request, "Heartbeat"), HeartbeatResponse())
        error: str = (await staying).error_code.name
        return error

    assert with_handlers(broker, played.topics, ask) == "none"
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_every_api_of_the_coordinator_has_its_patience() -> None:
    events_only = {"FindCoordinator", "WriteTxnMarkers", "TopicsDeleted"}
    assert errors._PATIENCE.keys() == APIS.keys() - events_only
    assert errors.PATIENT_SECONDS >= errors.BESIDE_HEARTBEATS_SECONDS
