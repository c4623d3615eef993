"""The memory for the requests of all connections together."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.types import GroupId
from kio.static.primitive import i32

from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.proxy.admission.request_memory import ALWAYS_BYTES, ConnectionMemory, RequestMemory
from streaming.gateway.wire.codec import encode_request
from tests.gateway.conftest import NewGateway
from tests.gateway.support.heartbeat_handlers import PARKED, ParkingHandler, heartbeat_api
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import heartbeat, metadata
from tests.gateway.support.wire_client import WireClient
from tests.support.topics import create_topic, unique
from tests.support.waiting import wait_until

LARGE = 20_000
LIMIT = 2 * LARGE


def large_heartbeat(group_id: str) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=GroupId(group_id), generation_id=i32(1), member_id="m" * LARGE, group_instance_id=None
    )


class Waiting:
    """A connection that takes room for a request as soon as there is some, and records its name then."""

    def __init__(self, memory: RequestMemory, name: str, served: list[str]) -> None:
        self.memory = ConnectionMemory(memory, self.ask)
        self._name, self._served = name, served

    def ask(self) -> None:
        if self.memory.reserve(LARGE):
            self._served.append(self._name)


async def passes() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_requests_get_room_in_the_order_in_which_they_asked() -> None:
    async def run() -> None:
        memory, served = RequestMemory(LIMIT), list[str]()
        first, second, third, fourth = (Waiting(memory, name, served) for name in "abcd")
        for each in (first, second, third, fourth, third):
            each.ask()
        assert served == ["a", "b"]
        assert (memory.used, memory.waiting) == (LIMIT, 2)
        second.memory.settle(0)
        # It asks again before the others are resumed.
        second.ask()
        await passes()
        assert served == ["a", "b", "c"]
        assert (memory.used, memory.waiting) == (LIMIT, 2)
        fourth.memory.close()
        first.memory.close()
        await passes()
        assert served == ["a", "b", "c", "b"]
        for each in (second, third):
            each.memory.close()
        assert (memory.used, memory.waiting) == (0, 0)

    asyncio.run(run())


def test_a_connection_that_is_resumed_and_takes_nothing_holds_up_no_other() -> None:
    async def run() -> None:
        memory, served = RequestMemory(LIMIT), list[str]()
        holder, other = Waiting(memory, "holder", served), Waiting(memory, "other", served)
        slow = ConnectionMemory(memory, lambda: None)
        holder.memory.settle(LIMIT)
        assert not slow.reserve(LARGE)
        other.ask()
        holder.memory.settle(0)
        await passes()
        assert served == ["other"]

    asyncio.run(run())


def test_a_connection_may_always_have_a_small_request() -> None:
    memory = RequestMemory(LIMIT)
    full, small = (ConnectionMemory(memory, lambda: None) for _ in range(2))
    full.settle(LIMIT)
    assert small.reserve(ALWAYS_BYTES)
    assert not small.reserve(1)
    assert memory.used == LIMIT + ALWAYS_BYTES


def test_a_closed_connection_takes_no_memory_whatever_ends_later() -> None:
    memory = RequestMemory(LIMIT)
    connection = ConnectionMemory(memory, lambda: None)
    connection.settle(LARGE)
    connection.close()
    connection.settle(LARGE)
    assert memory.used == 0


@pytest.fixture
def parking() -> ParkingHandler:
    return ParkingHandler()


@pytest.fixture
def running(new_gateway: NewGateway, parking: ParkingHandler) -> RunningGateway:
    return new_gateway(heartbeat_api(parking.handle), {"queued-max-request-bytes": LIMIT})


def test_requests_beyond_the_memory_for_all_wait_and_are_answered(
    running: RunningGateway, parking: ParkingHandler
) -> None:
    with (
        WireClient(running.port) as first,
        WireClient(running.port) as second,
        WireClient(running.port) as third,
        WireClient(running.port) as leaves,
        WireClient(running.port) as bystander,
    ):
        for client in (first, second):
            client.send(large_heartbeat(PARKED))
        wait_until(lambda: running.metric("request_bytes") >= LIMIT, "the memory is used up")
        third.send(large_heartbeat("third"))
        leaves.send_bytes(encode_request(large_heartbeat("leaves"), 1, "test")[:100])
        wait_until(lambda: running.metric("waiting_connections") == 2, "two connections wait")
        leaves.close()
        wait_until(lambda: running.metric("waiting_connections") == 1, "one of them has left")
        assert bystander.ask(heartbeat()).error_code is ErrorCode.none
        assert parking.arrived == [PARKED, PARKED, "group"]
        running.call(parking.release())
        for client in (first, second, third):
            client.receive_frame()
        assert parking.arrived == [PARKED, PARKED, "group", "third"]
        wait_until(lambda: running.metric("request_bytes") == 0, "the memory is free")


def test_a_request_that_has_begun_is_completed_while_there_is_no_memory(
    running: RunningGateway, parking: ParkingHandler
) -> None:
    frame = encode_request(large_heartbeat("begun"), 1, "test")
    with WireClient(running.port) as begun, WireClient(running.port) as parked:
        begun.send_bytes(frame[:100])
        wait_until(lambda: running.metric("request_bytes") == len(frame), "its whole length counts")
        parked.send(large_heartbeat(PARKED))
        wait_until(lambda: parking.arrived == [PARKED], "the memory is used up")
        begun.send_bytes(frame[100:])
        begun.receive_frame()
        running.call(parking.release())
        parked.receive_frame()
    assert parking.arrived == [PARKED, "begun"]


def test_a_rewritten_response_beyond_the_memory_for_all_waits(
    running: RunningGateway, parking: ParkingHandler, broker: EmbeddedBroker
) -> None:
    """A small one does not: with it, clients find their brokers."""
    topic, partitions = unique("wide"), 500
    create_topic(broker.bootstrap_servers, topic, partitions)
    with (
        WireClient(running.port) as first,
        WireClient(running.port) as second,
        WireClient(running.port) as asks,
        WireClient(running.port) as bystander,
    ):
        assert len(asks.ask(metadata(topic)).topics[0].partitions) == partitions
        for client in (first, second):
            client.send(large_heartbeat(PARKED))
        wait_until(lambda: running.metric("request_bytes") >= LIMIT, "the memory is used up")
        asks.send(metadata(topic))
        wait_until(lambda: running.metric("waiting_connections") == 1, "the response waits")
        assert bystander.ask(metadata("absent")).brokers
        assert running.metric("waiting_connections") == 1
        running.call(parking.release())
        _, answer = asks.receive(metadata(topic))
        assert len(answer.topics[0].partitions) == partitions
        wait_until(lambda: running.metric("request_bytes") == 0, "the memory is free")
