import asyncio
import os
import re
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.static.primitive import i8, i32Timedelta
from kio.static.protocol import Entity, RequestPayload

from streaming.broker import EmbeddedBroker
from streaming.gateway.request import ClientRequest, ServedApi
from streaming.gateway.upstream import forward_upstream
from tests.streaming.gateway.clients import LIMIT_SECONDS, consume_all, produce_all
from tests.streaming.gateway.conftest import NewGateway
from tests.streaming.gateway.in_process import RunningGateway
from tests.streaming.gateway.requests import api_versions, fetch, heartbeat, metadata, produce
from tests.streaming.gateway.wire_client import ClosedByPeer, WireClient

HEARTBEAT = 12


def heartbeats(handle: Callable[[ClientRequest], Awaitable[Entity]]) -> dict[int, ServedApi]:
    return {HEARTBEAT: ServedApi("Heartbeat", HEARTBEAT, 0, 4, handle)}


def answer(error: ErrorCode = ErrorCode.none) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time=i32Timedelta.parse(timedelta(0)), error_code=error)


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.01)


class Parking:
    """A handler that answers group ``parked`` when it is released, and all others at once."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self.cancelled = threading.Event()
        self._released = asyncio.Event()

    async def handle(self, request: ClientRequest) -> Entity:
        group_id = request.payload.group_id  # type: ignore[attr-defined]
        self.arrived.append(group_id)
        if group_id == "parked":
            try:
                await self._released.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        return answer()

    async def release(self) -> None:
        self._released.set()


@pytest.mark.parametrize(
    "config", [{}, {"enable.idempotence": True}, {"acks": 0}, {"compression.type": "zstd"}], ids=str
)
def test_what_is_produced_through_the_gateway_is_consumed_through_it(
    gateway: RunningGateway, topic: str, config: dict[str, object]
) -> None:
    values = [os.urandom(100_000) for _ in range(50)]
    produce_all(gateway.bootstrap_servers, topic, values, **config)
    assert consume_all(gateway.bootstrap_servers, topic, len(values)) == values


def test_the_bytes_are_those_of_the_broker(gateway: RunningGateway, broker: EmbeddedBroker, topic: str) -> None:
    produce_all(gateway.bootstrap_servers, topic, [os.urandom(700_000) for _ in range(10)])
    frames = []
    for port in (gateway.port, int(broker.bootstrap_servers.rpartition(":")[2])):
        with WireClient(port) as client:
            client.send(fetch(topic, 50_000_000))
            frames.append(client.receive_frame())
    assert frames[0] == frames[1]
    assert len(frames[0]) > 7_000_000


def unacknowledged(running: RunningGateway, topic: str, value: bytes) -> RequestPayload:
    """Writes the value to the topic, and returns a Produce request with acks 0 that writes it once more."""
    produce_all(running.bootstrap_servers, topic, [value])
    with WireClient(running.port) as client:
        fetched = client.ask(fetch(topic, 2 * len(value))).responses[0].partitions[0]
    return produce(7, acks=0, topic=topic, records=fetched.records)


def test_a_request_without_acks_has_no_answer(gateway: RunningGateway, topic: str) -> None:
    request = unacknowledged(gateway, topic, b"value")
    with WireClient(gateway.port) as client:
        for _ in range(3):
            client.send(request)
            assert client.ask(metadata(topic)).topics[0].error_code is ErrorCode.none
    assert consume_all(gateway.bootstrap_servers, topic, 4) == [b"value"] * 4


@pytest.mark.parametrize(("size", "count"), [(5, 1), (900_000, 4)])
def test_what_was_sent_without_acks_before_the_client_went_still_arrives(
    gateway: RunningGateway, topic: str, size: int, count: int
) -> None:
    value = os.urandom(size)
    request = unacknowledged(gateway, topic, value)
    for _ in range(10):
        with WireClient(gateway.port) as client:
            for _ in range(count):
                client.send(request)
    everything = [value] * (1 + 10 * count)
    assert consume_all(gateway.bootstrap_servers, topic, len(everything)) == everything


def test_a_transactional_producer_works(gateway: RunningGateway, topic: str) -> None:
    producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "transactional.id": f"through-{topic}"})
    producer.init_transactions(LIMIT_SECONDS)
    for commits in (True, False, True):
        producer.begin_transaction()
        producer.produce(topic, b"committed" if commits else b"aborted")
        producer.flush(LIMIT_SECONDS)
        (producer.commit_transaction if commits else producer.abort_transaction)(LIMIT_SECONDS)
    consumed = consume_all(gateway.bootstrap_servers, topic, 2, **{"isolation.level": "read_committed"})
    assert consumed == [b"committed", b"committed"]


def test_no_answer_tells_where_the_broker_really_is(
    gateway: RunningGateway, broker: EmbeddedBroker, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap_servers})
    (told,) = admin.list_topics(topic, LIMIT_SECONDS).brokers.values()
    assert f"{told.host}:{told.port}" == gateway.bootstrap_servers
    (node,) = admin.describe_cluster(request_timeout=LIMIT_SECONDS).result(LIMIT_SECONDS).nodes
    assert f"{node.host}:{node.port}" == gateway.bootstrap_servers
    assert gateway.bootstrap_servers != broker.bootstrap_servers


def test_the_gateway_names_itself_as_coordinator_of_groups_and_of_transactions(gateway: RunningGateway) -> None:
    with WireClient(gateway.port) as client:
        for key_type, keys in ((0, ("one", "two")), (1, ("three",))):
            request = FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=keys)

            def found(request: FindCoordinatorRequest = request) -> bool:
                answers = client.ask(request).coordinators
                assert tuple(answer.key for answer in answers) == request.coordinator_keys
                # The broker makes its topic of transactions when it is first asked.
                return all(
                    (answer.error_code, answer.node_id, answer.port) == (ErrorCode.none, 1, gateway.port)
                    for answer in answers
                )

            eventually(found, f"a coordinator of type {key_type}")
        shares = client.ask(FindCoordinatorRequest(key_type=i8(2), coordinator_keys=("g:t:0",)))
        assert [found.error_code for found in shares.coordinators] == [ErrorCode.invalid_request]


def test_requests_for_broker_and_gateway_are_answered_in_their_order(new_gateway: NewGateway, topic: str) -> None:
    async def slow(_request: ClientRequest) -> Entity:
        await asyncio.sleep(0.02)
        return answer()

    running = new_gateway(heartbeats(slow))
    kinds: list[RequestPayload] = [
        metadata(topic),
        heartbeat(),
        fetch(topic, 1000),
        heartbeat(),
        heartbeat(),
        api_versions(),
        metadata(),
    ]
    requests = kinds * 20
    with WireClient(running.port) as client:
        sent = [client.send(request) for request in requests]
        assert [client.receive(request)[0] for request in requests] == sent


def test_a_parked_request_holds_up_its_own_connection_only(new_gateway: NewGateway, topic: str) -> None:
    parking = Parking()
    running = new_gateway(heartbeats(parking.handle))
    with WireClient(running.port) as parked, WireClient(running.port) as other:
        held: list[RequestPayload] = [heartbeat("parked"), heartbeat("later"), metadata(topic)]
        sent = [parked.send(request) for request in held]
        eventually(lambda: parking.arrived == ["parked", "later"], "the requests behind a parked one are begun")
        assert other.ask(heartbeat("other")).error_code is ErrorCode.none
        assert other.ask(metadata(topic)).topics[0].error_code is ErrorCode.none
        running.call(parking.release())
        assert [parked.receive(request)[0] for request in held] == sent


def test_a_client_that_goes_takes_its_requests_with_it(new_gateway: NewGateway) -> None:
    parking = Parking()
    running = new_gateway(heartbeats(parking.handle))
    with WireClient(running.port) as client:
        client.send(heartbeat("parked"))
        eventually(lambda: parking.arrived == ["parked"], "the request is begun")
    assert parking.cancelled.wait(LIMIT_SECONDS)
    eventually(lambda: not running.server.connections, "the connection is forgotten")


def test_a_client_may_have_only_so_many_requests_in_flight(new_gateway: NewGateway) -> None:
    parking = Parking()
    running = new_gateway(heartbeats(parking.handle), {"max-in-flight": 10})
    with WireClient(running.port) as client:
        requests = [heartbeat("parked"), *(heartbeat(f"later-{number}") for number in range(50))]
        sent = [client.send(request) for request in requests]
        eventually(lambda: len(parking.arrived) == 10, "ten requests are begun")
        with WireClient(running.port) as other:
            assert other.ask(heartbeat("other")).error_code is ErrorCode.none
        assert len(parking.arrived) == 11
        running.call(parking.release())
        assert [client.receive(request)[0] for request in requests] == sent


def test_a_failing_handler_closes_that_connection_only(new_gateway: NewGateway) -> None:
    async def fails(request: ClientRequest) -> Entity:
        if request.caller.client_id == "unlucky":
            raise RuntimeError("on purpose")
        return answer()

    running = new_gateway(heartbeats(fails))
    with WireClient(running.port) as unlucky, WireClient(running.port) as other:
        unlucky.send(heartbeat(), "unlucky")
        assert unlucky.is_closed_by_peer()
        assert other.ask(heartbeat()).error_code is ErrorCode.none
    assert running.metric("failed_handlers_total", api="Heartbeat") == 1


def test_a_handler_is_told_who_asks_and_may_ask_the_broker(new_gateway: NewGateway, topic: str) -> None:
    seen: list[ClientRequest] = []

    async def asks(request: ClientRequest) -> Entity:
        seen.append(request)
        found: Any = await forward_upstream(metadata(topic))
        return answer(found.topics[0].error_code)

    running = new_gateway(heartbeats(asks))
    with WireClient(running.port) as client:
        sent = [client.send(heartbeat(), "me"), client.send(metadata(topic)), client.send(heartbeat(), "me")]
        kinds: list[RequestPayload] = [heartbeat(), metadata(topic), heartbeat()]
        assert [client.receive(kind)[0] for kind in kinds] == sent
    caller = seen[0].caller
    assert (caller.client_id, caller.host, caller.principal) == ("me", "127.0.0.1", "User:ANONYMOUS")
    assert (seen[0].node_id, seen[0].api_key, seen[0].version) == (1, HEARTBEAT, 4)


def test_a_client_that_does_not_read_holds_up_the_broker_and_not_the_gateways_memory(
    new_gateway: NewGateway, topic: str
) -> None:
    running = new_gateway()
    produce_all(running.bootstrap_servers, topic, [os.urandom(900_000) for _ in range(30)])
    with WireClient(running.port, local_buffer=4096) as client:
        size = 25_000_000
        sent = [client.send(fetch(topic, size)) for _ in range(8)]
        # What a socket of the system takes, at most, is far less than what the broker wants to send.
        buffered = []
        eventually(lambda: running.metric("buffered_bytes") > 0, "answers wait for the client")
        for _ in range(20):
            buffered.append(running.metric("buffered_bytes"))
            with WireClient(running.port) as other:
                assert other.ask(metadata(topic)).topics[0].error_code is ErrorCode.none
        assert max(buffered) < 4 * running.options.limits.connection_buffer_bytes
        received = []
        for _ in sent:
            frame = client.receive_frame()
            assert len(frame) > size - 2_000_000
            received.append(int.from_bytes(frame[4:8], "big"))
        assert received == sent


def test_the_end_of_the_broker_ends_clients_that_wait_for_it_and_spares_the_others(new_gateway: NewGateway) -> None:
    async def at_once(_request: ClientRequest) -> Entity:
        return answer()

    with EmbeddedBroker() as short_lived:
        running = new_gateway(heartbeats(at_once), bootstrap_servers=short_lived.bootstrap_servers)
        with WireClient(running.port) as asks_later, WireClient(running.port) as member:
            for client in (asks_later, member):
                client.ask(metadata())
                client.ask(heartbeat())
            short_lived.kill()
            assert member.ask(heartbeat()).error_code is ErrorCode.none
            asks_later.send(metadata())
            with pytest.raises(ClosedByPeer):
                asks_later.receive_frame()
            with WireClient(running.port) as new:
                assert new.ask(api_versions()).error_code is ErrorCode.none
                new.send(metadata())
                assert new.is_closed_by_peer()
            short_lived.restart()
            with WireClient(running.port) as new:
                assert re.fullmatch(r".{22}", new.ask(metadata()).cluster_id)
            assert member.ask(metadata()).brokers[0].port == running.port
    assert running.metric("lost_upstreams_total") == 2
