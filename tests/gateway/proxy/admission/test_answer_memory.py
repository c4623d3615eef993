"""The memory for answers: each has room before its request is carried out, and clients read them in time."""

import asyncio
from contextlib import ExitStack

import pytest
from kio.schema.errors import ErrorCode

from coordinator_logic.apis import DESCRIBE_GROUPS
from coordinator_logic.messages import DescribedGroup, DescribedMember, DescribeGroupsRequest, DescribeGroupsResponse
from streaming.gateway.proxy.admission.answer_memory import (
    ANSWER_BYTES_OF_A_CONNECTION,
    MOST_BYTES_OF_AN_ANSWER,
    AnswerRoom,
    ConnectionAnswers,
)
from streaming.gateway.proxy.admission.delivery import Delivery
from streaming.gateway.proxy.admission.request_memory import RequestMemory
from streaming.gateway.wire.answer_room import ASSIGNMENT_BYTES, NoAnswerRoom, await_answer_room
from streaming.gateway.wire.client_request import ClientRequest, ServedApi
from tests.gateway.conftest import NewGateway
from tests.gateway.groups.test_bystander import frame
from tests.gateway.support.heartbeat_handlers import answer_at_once, heartbeat_api
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import heartbeat
from tests.gateway.support.wire_client import WireClient
from tests.support.waiting import wait_until

MIB = 1024 * 1024
LARGE = 1_400_000
CONNECTIONS, PIPELINED = 14, 100


async def passes() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


# ---- without a gateway ---------------------------------------------------------------------------------------------


class Connection:
    """A connection's answers; ``unread`` and ``delayed`` are the bytes that its client has yet to read or to get."""

    def __init__(self, memory: RequestMemory | None = None) -> None:
        self.memory = memory or RequestMemory(100 * MIB)
        self.unread = self.delayed = 0
        self.answers = ConnectionAnswers(self.memory, lambda: self.unread, lambda: self.delayed)

    def room(self, *, is_next: bool = False) -> AnswerRoom:
        return AnswerRoom(self.answers, lambda: is_next)


def test_large_answers_of_a_connection_are_made_one_after_the_other_as_its_client_reads_them() -> None:
    async def run() -> None:
        connection = Connection()
        rooms = [connection.room() for _ in range(3)]
        waiting = [asyncio.create_task(room.reserve(LARGE)) for room in rooms]
        await passes()
        assert [each.done() for each in waiting] == [True, False, False]
        assert connection.memory.used == LARGE
        connection.unread = LARGE
        rooms[0].release()
        await passes()
        assert [each.done() for each in waiting] == [True, False, False]
        connection.unread = 0
        connection.answers.relieve()
        await passes()
        assert [each.done() for each in waiting] == [True, True, False]
        rooms[1].release()
        await asyncio.gather(*waiting)
        rooms[2].release()
        assert connection.memory.used == 0

    asyncio.run(run())


def test_small_answers_of_a_connection_are_made_side_by_side() -> None:
    async def run() -> None:
        connection = Connection()
        size = ANSWER_BYTES_OF_A_CONNECTION // 10
        for _ in range(10):
            await connection.room().reserve(size)
        assert connection.answers.reserved == 10 * size

    asyncio.run(run())


def test_an_answer_that_later_ones_wait_for_is_made_before_them() -> None:
    async def run() -> None:
        memory = RequestMemory(LARGE)
        connection = Connection(memory)
        first, second, third = connection.room(is_next=True), connection.room(), connection.room()
        later = asyncio.create_task(second.reserve(LARGE))
        latest = asyncio.create_task(third.reserve(LARGE))
        await passes()
        # It is made, but the client gets it after the first one; the memory of all is used up.
        connection.delayed = LARGE
        memory.use(LARGE)
        second.release()
        await passes()
        assert later.done()
        assert not latest.done()
        await first.reserve(LARGE)
        latest.cancel()

    asyncio.run(run())


def test_requests_that_may_be_parked_take_room_in_their_connection_only() -> None:
    async def run() -> None:
        memory = RequestMemory(10)
        memory.use(10)
        connection = Connection(memory)
        rooms = [connection.room() for _ in range(5)]
        waiting = [asyncio.create_task(room.reserve(ASSIGNMENT_BYTES, True)) for room in rooms]
        await passes()
        assert [each.done() for each in waiting] == [True, True, True, True, False]
        rooms[0].release()
        await asyncio.gather(*waiting)
        for room in rooms:
            room.release()
        assert (memory.used, connection.answers.reserved) == (10, 0)

    asyncio.run(run())


def test_an_answer_about_many_groups_ends_with_those_that_fit() -> None:
    async def run() -> None:
        connection = Connection()
        room = connection.room()
        settle = await room.reserve(MOST_BYTES_OF_AN_ANSWER)
        with pytest.raises(NoAnswerRoom):
            await room.reserve(1)
        settle(MOST_BYTES_OF_AN_ANSWER - 1)
        await room.reserve(1)
        room.release()
        assert connection.answers.reserved == 0

    asyncio.run(run())


def test_answers_wait_for_the_memory_of_all_in_their_order() -> None:
    async def run() -> None:
        memory = RequestMemory(10)
        memory.use(10)
        connections = [Connection(memory) for _ in range(4)]
        waiting = [asyncio.create_task(each.room().reserve(10)) for each in connections]
        await passes()
        assert memory.waiting == 4
        waiting[0].cancel()
        await passes()
        assert connections[0].answers.reserved == 0
        for used in range(1, 4):
            memory.use(-10)
            await passes()
            assert [each.done() for each in waiting[1:]] == [number < used for number in range(3)]
        assert (memory.used, memory.waiting) == (10, 0)

    asyncio.run(run())


@pytest.mark.parametrize("lacks", ["connection", "all"])
def test_the_answers_of_a_connection_that_closes_leave_no_trace(lacks: str) -> None:
    async def run() -> None:
        memory = RequestMemory(10)
        connection, other = Connection(memory), Connection(memory)
        if lacks == "connection":
            connection.unread = 2 * MIB
        else:
            memory.use(10)
        waiting = [asyncio.create_task(connection.room().reserve(5)) for _ in range(3)]
        await passes()
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert all(each.cancelled() for each in waiting)
        assert (connection.answers.reserved, memory.waiting) == (0, 0)
        if lacks == "all":
            memory.use(-10)
        await other.room().reserve(10)

    asyncio.run(run())


def test_a_client_is_late_with_what_it_has_not_read_in_full() -> None:
    delivery = Delivery()
    delivery.written = 100
    assert delivery.seconds(100, 10.0) == 0.0
    delivery.written = 300
    assert delivery.seconds(201, 15.0) == 5.0
    assert delivery.seconds(200, 16.0) == 0.0
    assert delivery.seconds(1, 20.0) == 4.0
    assert delivery.seconds(0, 21.0) == 0.0


def test_a_client_stalls_while_it_reads_nothing() -> None:
    delivery = Delivery()
    delivery.written = 100
    assert delivery.stalled_seconds(100, 10.0) == 0.0
    assert delivery.stalled_seconds(100, 16.0) == 6.0
    assert delivery.stalled_seconds(99, 17.0) == 0.0
    assert delivery.stalled_seconds(0, 30.0) == 0.0


# ---- through a gateway ---------------------------------------------------------------------------------------------


async def describe(request: ClientRequest) -> DescribeGroupsResponse:
    """A group of 1.4 MB, whose answer takes a while to be made."""
    await await_answer_room(LARGE)
    await asyncio.sleep(0.01)
    member = DescribedMember("m", None, "c", "/h", bytes(LARGE), b"")
    return DescribeGroupsResponse([DescribedGroup(each, members=[member]) for each in request.payload.groups])


def request() -> bytes:
    return frame(DescribeGroupsRequest(["large"]), 15, 5)


@pytest.fixture
def large_answers() -> dict[int, ServedApi]:
    key = DESCRIBE_GROUPS.key
    assert key is not None
    message = DESCRIBE_GROUPS.request_type
    return {
        **heartbeat_api(answer_at_once),
        key: ServedApi("DescribeGroups", key, 0, 5, describe, message_type=message),
    }


def attack(running: RunningGateway, stack: ExitStack) -> list[WireClient]:
    """Connections that pipeline requests, and read no response."""
    clients = [stack.enter_context(WireClient(running.port, local_buffer=4096)) for _ in range(CONNECTIONS)]
    for client in clients:
        client.send_bytes(request() * PIPELINED)
    return clients


def test_clients_that_read_no_answers_take_a_bounded_memory(
    new_gateway: NewGateway, large_answers: dict[int, ServedApi]
) -> None:
    running = new_gateway(large_answers)
    with ExitStack() as stack:
        attack(running, stack)
        wait_until(
            lambda: running.metric("buffered_bytes") > CONNECTIONS * LARGE * 0.5, "answers wait for their clients"
        )
        with WireClient(running.port) as other:
            for _ in range(100):
                assert other.ask(heartbeat()).error_code is ErrorCode.none
            other.send_bytes(request())
            assert len(other.receive_frame()) > LARGE
        assert running.metric("buffered_bytes") < CONNECTIONS * (LARGE + ANSWER_BYTES_OF_A_CONNECTION)


def test_clients_that_read_no_answers_are_closed_while_others_wait_for_memory(
    new_gateway: NewGateway, large_answers: dict[int, ServedApi]
) -> None:
    running = new_gateway(large_answers, {"queued-max-request-bytes": 5 * LARGE})
    with ExitStack() as stack:
        attack(running, stack)
        unread = 4 * LARGE
        wait_until(lambda: sum(each.unsent_bytes for each in running.server.connections) > unread, "answers wait")
        assert running.metric("request_bytes") < 7 * LARGE
        with WireClient(running.port) as other:
            assert other.ask(heartbeat()).error_code is ErrorCode.none
            other.send_bytes(request())
            assert len(other.receive_frame()) > LARGE
    assert running.metric("overdue_connections_total", awaited="delivery") > 0


def test_a_client_that_does_not_read_its_answer_in_time_is_closed(
    new_gateway: NewGateway, large_answers: dict[int, ServedApi]
) -> None:
    running = new_gateway(large_answers, {"response-delivery-timeout-ms": 1_000})
    with WireClient(running.port, local_buffer=4096) as stalls, WireClient(running.port) as reads:
        for client in (stalls, reads):
            client.send_bytes(request() * 3)
        for _ in range(3):
            reads.receive_frame()
        wait_until(lambda: running.metric("overdue_connections_total", awaited="delivery") == 1, "the client is late")
        assert reads.ask(heartbeat()).error_code is ErrorCode.none
