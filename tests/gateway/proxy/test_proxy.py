"""Requests and responses pass the gateway in order, and a failure on one connection affects no other."""

import asyncio
import os
import re
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.static.constants import EntityType
from kio.static.primitive import i8
from kio.static.protocol import Entity, RequestPayload

from coordinator_logic import apis
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.security.internal_topics.refusals import DELETE_BY_ID_SINCE
from streaming.gateway.wire.api_keys import DELETE_TOPICS
from streaming.gateway.wire.client_request import ClientRequest
from streaming.gateway.wire.forwarding import forward_upstream
from tests.gateway.conftest import NewGateway
from tests.gateway.support.heartbeat_handlers import (
    PARKED,
    ParkingHandler,
    answer_at_once,
    heartbeat_api,
    heartbeat_response,
)
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import SECOND, api_versions, fetch, heartbeat, metadata, produce
from tests.gateway.support.wire_client import ClosedByPeer, WireClient
from tests.support.kafka_io import consume_all, produce_all
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS, wait_until


@pytest.mark.parametrize(
    "config", [{}, {"enable.idempotence": True}, {"acks": 0}, {"compression.type": "zstd"}], ids=str
)
def test_records_produced_through_the_gateway_can_be_consumed_through_it(
    gateway: RunningGateway, topic: str, config: dict[str, object]
) -> None:
    values = [os.urandom(100_000) for _ in range(50)]
    produce_all(gateway.bootstrap_servers, topic, values, **config)
    assert consume_all(gateway.bootstrap_servers, topic, len(values)) == values


def test_a_fetch_response_has_the_same_bytes_as_the_brokers_own(
    gateway: RunningGateway, broker: EmbeddedBroker, topic: str
) -> None:
    produce_all(gateway.bootstrap_servers, topic, [os.urandom(700_000) for _ in range(10)])
    frames = []
    for port in (gateway.port, int(broker.bootstrap_servers.rpartition(":")[2])):
        with WireClient(port) as client:
            client.send(fetch(topic, 50_000_000))
            frames.append(client.receive_frame())
    assert frames[0] == frames[1]
    assert len(frames[0]) > 7_000_000


def acks_0_request(running: RunningGateway, topic: str, value: bytes) -> RequestPayload:
    """Produce the value, and return a Produce request with acks 0 for the same record."""
    produce_all(running.bootstrap_servers, topic, [value])
    with WireClient(running.port) as client:
        fetched = client.ask(fetch(topic, 2 * len(value))).responses[0].partitions[0]
    return produce(7, acks=0, topic=topic, records=fetched.records)


def test_a_produce_request_with_acks_0_gets_no_response(gateway: RunningGateway, topic: str) -> None:
    request = acks_0_request(gateway, topic, b"value")
    with WireClient(gateway.port) as client:
        for _ in range(3):
            client.send(request)
            assert client.ask(metadata(topic)).topics[0].error_code is ErrorCode.none
    assert consume_all(gateway.bootstrap_servers, topic, 4) == [b"value"] * 4


@pytest.mark.parametrize(("size", "count"), [(5, 1), (900_000, 4)])
def test_records_sent_with_acks_0_arrive_even_if_the_client_disconnects_at_once(
    gateway: RunningGateway, topic: str, size: int, count: int
) -> None:
    value = os.urandom(size)
    request = acks_0_request(gateway, topic, value)
    for _ in range(10):
        with WireClient(gateway.port) as client:
            for _ in range(count):
                client.send(request)
    expected = [value] * (1 + 10 * count)
    assert consume_all(gateway.bootstrap_servers, topic, len(expected)) == expected


@pytest.mark.parametrize("version", [1, DELETE_BY_ID_SINCE])
def test_the_gateway_hears_which_topics_a_client_has_deleted(gateway: RunningGateway, topic: str, version: int) -> None:
    missing = unique("missing")
    module: Any = load_payload_module(DELETE_TOPICS, version, EntityType.request)
    with WireClient(gateway.port) as client:
        if version < DELETE_BY_ID_SINCE:
            named = {"topic_names": (topic, missing)}
        else:
            (found,) = client.ask(metadata(topic)).topics
            topics = ((None, found.topic_id), (missing, None))
            named = {"topics": tuple(module.DeleteTopicState(name=name, topic_id=each) for name, each in topics)}
        response = client.ask(module.DeleteTopicsRequest(**named, timeout=SECOND))
    errors = {each.name: each.error_code for each in response.responses}
    assert errors == {topic: ErrorCode.none, missing: ErrorCode.unknown_topic_or_partition}
    assert topic in gateway.deleted
    assert missing not in gateway.deleted


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


def test_responses_contain_advertised_addresses_only(
    gateway: RunningGateway, broker: EmbeddedBroker, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap_servers})
    (advertised,) = admin.list_topics(topic, LIMIT_SECONDS).brokers.values()
    assert f"{advertised.host}:{advertised.port}" == gateway.bootstrap_servers
    (node,) = admin.describe_cluster(request_timeout=LIMIT_SECONDS).result(LIMIT_SECONDS).nodes
    assert f"{node.host}:{node.port}" == gateway.bootstrap_servers
    assert gateway.bootstrap_servers != broker.bootstrap_servers


def test_find_coordinator_names_the_gateway_for_groups_and_for_transactions(gateway: RunningGateway) -> None:
    with WireClient(gateway.port) as client:
        for key_type, keys in ((0, ("one", "two")), (1, ("three",))):
            request = FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=keys)

            def found(request: FindCoordinatorRequest = request) -> bool:
                answers = client.ask(request).coordinators
                assert tuple(answer.key for answer in answers) == request.coordinator_keys
                # The broker creates its transaction topic at the first request.
                return all(
                    (answer.error_code, answer.node_id, answer.port) == (ErrorCode.none, 1, gateway.port)
                    for answer in answers
                )

            wait_until(found, f"a coordinator of type {key_type}")
        shares = client.ask(FindCoordinatorRequest(key_type=i8(2), coordinator_keys=("g:t:0",)))
        assert [found.error_code for found in shares.coordinators] == [ErrorCode.invalid_request]


def test_responses_of_broker_and_handlers_keep_the_order_of_their_requests(new_gateway: NewGateway, topic: str) -> None:
    async def slow(_request: ClientRequest) -> Entity:
        await asyncio.sleep(0.02)
        return heartbeat_response()

    running = new_gateway(heartbeat_api(slow))
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


def test_a_parked_request_delays_responses_on_its_own_connection_only(new_gateway: NewGateway, topic: str) -> None:
    parking = ParkingHandler()
    running = new_gateway(heartbeat_api(parking.handle))
    with WireClient(running.port) as parked, WireClient(running.port) as other:
        delayed: list[RequestPayload] = [heartbeat(PARKED), heartbeat("later"), metadata(topic)]
        sent = [parked.send(request) for request in delayed]
        wait_until(lambda: parking.arrived == [PARKED, "later"], "the handler has the requests behind a parked one")
        assert other.ask(heartbeat("other")).error_code is ErrorCode.none
        assert other.ask(metadata(topic)).topics[0].error_code is ErrorCode.none
        running.call(parking.release())
        assert [parked.receive(request)[0] for request in delayed] == sent


def test_a_disconnect_cancels_the_clients_requests(new_gateway: NewGateway) -> None:
    parking = ParkingHandler()
    running = new_gateway(heartbeat_api(parking.handle))
    with WireClient(running.port) as client:
        client.send(heartbeat(PARKED))
        wait_until(lambda: parking.arrived == [PARKED], "the handler has the request")
    assert parking.cancelled.wait(LIMIT_SECONDS)
    wait_until(lambda: not running.server.connections, "the connection is unregistered")


def test_requests_beyond_max_in_flight_wait(new_gateway: NewGateway) -> None:
    parking = ParkingHandler()
    running = new_gateway(heartbeat_api(parking.handle), {"max-in-flight": 10})
    with WireClient(running.port) as client:
        requests = [heartbeat(PARKED), *(heartbeat(f"later-{number}") for number in range(50))]
        sent = [client.send(request) for request in requests]
        wait_until(lambda: len(parking.arrived) == 10, "the handler has ten requests")
        with WireClient(running.port) as other:
            assert other.ask(heartbeat("other")).error_code is ErrorCode.none
        assert len(parking.arrived) == 11
        running.call(parking.release())
        assert [client.receive(request)[0] for request in requests] == sent


def test_a_failing_handler_closes_that_connection_only(new_gateway: NewGateway) -> None:
    async def fails(request: ClientRequest) -> Entity:
        if request.caller.client_id == "failing":
            raise RuntimeError("on purpose")
        return heartbeat_response()

    running = new_gateway(heartbeat_api(fails))
    with WireClient(running.port) as failing, WireClient(running.port) as other:
        failing.send(heartbeat(), "failing")
        assert failing.is_closed_by_peer()
        assert other.ask(heartbeat()).error_code is ErrorCode.none
    assert running.metric("failed_handlers_total", api="Heartbeat") == 1


def test_a_handler_knows_its_caller_and_can_forward_requests_to_the_broker(new_gateway: NewGateway, topic: str) -> None:
    handled: list[ClientRequest] = []

    async def forwards(request: ClientRequest) -> Entity:
        handled.append(request)
        found: Any = await forward_upstream(metadata(topic))
        return heartbeat_response(found.topics[0].error_code)

    running = new_gateway(heartbeat_api(forwards))
    with WireClient(running.port) as client:
        sent = [client.send(heartbeat(), "me"), client.send(metadata(topic)), client.send(heartbeat(), "me")]
        kinds: list[RequestPayload] = [heartbeat(), metadata(topic), heartbeat()]
        assert [client.receive(kind)[0] for kind in kinds] == sent
    caller = handled[0].caller
    assert (caller.client_id, caller.host, caller.principal) == ("me", "127.0.0.1", "User:ANONYMOUS")
    assert (handled[0].node_id, handled[0].api_key, handled[0].version) == (1, apis.HEARTBEAT.key, 4)


def test_a_client_that_does_not_read_slows_the_broker_down_instead_of_filling_memory(
    new_gateway: NewGateway, topic: str
) -> None:
    running = new_gateway()
    produce_all(running.bootstrap_servers, topic, [os.urandom(900_000) for _ in range(30)])
    with WireClient(running.port, local_buffer=4096) as client:
        size = 25_000_000
        sent = [client.send(fetch(topic, size)) for _ in range(8)]
        # The socket buffers of the system hold far less than the broker wants to send.
        buffered = []
        wait_until(lambda: running.metric("buffered_bytes") > 0, "responses wait for the client")
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


def test_a_dead_broker_closes_the_connections_with_requests_in_flight_and_no_others(new_gateway: NewGateway) -> None:
    with EmbeddedBroker() as short_lived:
        running = new_gateway(heartbeat_api(answer_at_once), bootstrap_servers=short_lived.bootstrap_servers)
        with WireClient(running.port) as connected, WireClient(running.port) as member:
            for client in (connected, member):
                client.ask(metadata())
                client.ask(heartbeat())
            short_lived.kill()
            assert member.ask(heartbeat()).error_code is ErrorCode.none
            connected.send(metadata())
            with pytest.raises(ClosedByPeer):
                connected.receive_frame()
            with WireClient(running.port) as new:
                assert new.ask(api_versions()).error_code is ErrorCode.none
                new.send(metadata())
                assert new.is_closed_by_peer()
            short_lived.restart()
            with WireClient(running.port) as new:
                assert re.fullmatch(r".{22}", new.ask(metadata()).cluster_id)
            assert member.ask(metadata()).brokers[0].port == running.port
    assert running.metric("lost_upstreams_total") == 2
