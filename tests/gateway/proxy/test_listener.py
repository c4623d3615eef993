"""Listeners: limits, draining, TLS, options, and the command that runs them."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from streaming.contract.errors import BadOptions, CannotRun
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.options import load_gateway_options
from streaming.gateway.wire.brokers import Address, Broker
from tests.gateway.conftest import NewGateway
from tests.gateway.support.certificate import Certificate
from tests.gateway.support.heartbeat_handlers import PARKED, ParkingHandler, heartbeat_api
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import heartbeat, metadata
from tests.gateway.support.wire_client import WireClient
from tests.support.kafka_io import consume_all, produce_all
from tests.support.waiting import LIMIT_SECONDS, wait_until


def test_a_connection_beyond_max_connections_is_closed_and_the_others_stay_open(new_gateway: NewGateway) -> None:
    running = new_gateway(None, {"max-connections": 2})
    with WireClient(running.port) as first, WireClient(running.port) as second:
        assert first.ask(metadata()).brokers
        assert second.ask(metadata()).brokers
        with WireClient(running.port) as third:
            assert third.is_closed_by_peer()
        assert first.ask(metadata()).brokers
    assert running.metric("rejected_connections_total") == 1
    wait_until(lambda: running.metric("connections") == 0, "the connections are unregistered")
    with WireClient(running.port) as fourth:
        assert fourth.ask(metadata()).brokers


def test_an_idle_connection_is_closed_unless_it_has_a_request_in_a_handler(new_gateway: NewGateway) -> None:
    parking = ParkingHandler()
    running = new_gateway(heartbeat_api(parking.handle), {"connections-max-idle-ms": 2_000})
    with WireClient(running.port) as idle, WireClient(running.port) as waits:
        waits.send(heartbeat(PARKED))
        wait_until(lambda: PARKED in parking.arrived, "the handler has the request")
        assert idle.ask(heartbeat()).error_code is ErrorCode.none
        assert idle.is_closed_by_peer()
        running.call(parking.release())
        assert waits.receive(heartbeat())[1].error_code is ErrorCode.none
    assert running.metric("idle_connections_total") >= 1


def test_a_stopping_gateway_answers_requests_in_flight(new_gateway: NewGateway) -> None:
    parking = ParkingHandler()
    running = new_gateway(heartbeat_api(parking.handle))
    with WireClient(running.port) as waits, WireClient(running.port) as idle:
        waits.send(heartbeat(PARKED))
        assert idle.ask(heartbeat()).error_code is ErrorCode.none
        wait_until(lambda: PARKED in parking.arrived, "the handler has the request")
        stopping = threading.Thread(target=lambda: running.call(running.server.stop()))
        stopping.start()
        assert idle.is_closed_by_peer()
        with pytest.raises(ConnectionRefusedError):
            WireClient(running.port)
        running.call(parking.release())
        assert waits.receive(heartbeat())[1].error_code is ErrorCode.none
        assert waits.is_closed_by_peer()
        stopping.join(LIMIT_SECONDS)
        assert not stopping.is_alive()


def test_a_stopping_gateway_answers_requests_in_flight_even_if_it_was_once_without_connections(
    new_gateway: NewGateway,
) -> None:
    parking = ParkingHandler()
    running = new_gateway(heartbeat_api(parking.handle))
    with WireClient(running.port) as first:
        assert first.ask(heartbeat()).error_code is ErrorCode.none
    wait_until(lambda: not running.server.connections, "the first connection is unregistered")
    with WireClient(running.port) as second:
        second.send(heartbeat(PARKED))
        wait_until(lambda: PARKED in parking.arrived, "the handler has the request")
        stopping = threading.Thread(target=lambda: running.call(running.server.stop()))
        stopping.start()
        wait_until(lambda: not_listening(running.port), "the gateway accepts no more connections")
        running.call(parking.release())
        assert second.receive(heartbeat())[1].error_code is ErrorCode.none
        stopping.join(LIMIT_SECONDS)
        assert not stopping.is_alive()


def not_listening(port: int) -> bool:
    """Whether connections to the port are refused."""
    try:
        WireClient(port).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # The port was closed during the handshake: the next attempt is refused.
        return False
    return False


def test_a_stopping_gateway_cancels_requests_after_the_grace_period(new_gateway: NewGateway) -> None:
    parking = ParkingHandler()
    running = new_gateway(heartbeat_api(parking.handle), {"shutdown-grace-ms": 50})
    with WireClient(running.port) as waits:
        waits.send(heartbeat(PARKED))
        wait_until(lambda: parking.arrived == [PARKED], "the handler has the request")
        running.call(running.server.stop())
        assert waits.is_closed_by_peer()
        assert parking.cancelled.wait(LIMIT_SECONDS)


def test_an_unknown_broker_in_a_response_gets_a_listener(new_gateway: NewGateway) -> None:
    running = new_gateway()
    known = running.server.cluster.brokers[1]

    async def advertise() -> Address | None:
        return running.server.advertise(Broker(7, known.address))

    advertised = running.call(advertise())
    assert advertised is not None
    assert advertised.port != running.port
    with WireClient(advertised.port) as client:
        assert [broker.port for broker in client.ask(metadata()).brokers] == [running.port]


def test_a_gateway_without_a_reachable_broker_does_not_start() -> None:
    running = RunningGateway("127.0.0.1:1", None, {"upstream-connect-timeout-ms": 500})
    try:
        with pytest.raises(CannotRun, match=r"127\.0\.0\.1:1"):
            running.start()
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({}, "bootstrap-servers is missing"),
        ({"max_connections": 0}, "max-connections"),
        ({"bootstrap_servers": "b:1", "listen": "0.0.0.0:19092"}, "advertised-host"),
        ({"bootstrap_servers": "b:1", "listen": "nonsense"}, "listen"),
        ({"bootstrap_servers": "b:1", "tls_key": "k"}, "tls-cert"),
        (
            {"bootstrap_servers": "b:1", "tls_cert": "/proc/nope/c"},
            "tls-cert: /proc/nope/c cannot be read",
        ),
        ({"bootstrap_servers": "b:1", "nonsense": "1"}, "no such option"),
    ],
)
def test_invalid_options_are_refused_by_name(flags: dict[str, object], problem: str) -> None:
    with pytest.raises(BadOptions, match=problem):
        load_gateway_options(flags)


# ---- TLS ---------------------------------------------------------------------------------------------------------


def test_clients_connect_over_tls(new_gateway: NewGateway, certificate: Certificate, topic: str) -> None:
    running = new_gateway(None, {"tls-cert": certificate.chain, "tls-key": certificate.key})
    secured = {"security.protocol": "SSL", "ssl.ca.location": certificate.authority}
    values = [os.urandom(500_000) for _ in range(20)]
    produce_all(running.bootstrap_servers, topic, values, **secured)
    assert consume_all(running.bootstrap_servers, topic, len(values), **secured) == values
    with WireClient(running.port) as plain:
        plain.send(metadata())
        assert plain.is_closed_by_peer()


def test_a_certificate_that_cannot_be_loaded_is_named(broker: EmbeddedBroker, tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("no certificate")
    running = RunningGateway(broker.bootstrap_servers, None, {"tls-cert": str(tmp_path / "none.pem")})
    try:
        with pytest.raises(CannotRun, match=r"none\.pem"):
            running.start()
    finally:
        running.stop()


# ---- the command -------------------------------------------------------------------------------------------------


@pytest.fixture
def command(broker: EmbeddedBroker) -> Iterator["subprocess.Popen[str]"]:
    arguments = ("gateway", "--json", "-b", broker.bootstrap_servers, "--listen", "127.0.0.1:0", "--metrics-port", "0")
    process = subprocess.Popen(
        [sys.executable, "-m", "streaming.cli", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def failing_checks(port: str, page: str) -> list[str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/{page}", timeout=LIMIT_SECONDS) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            found = json.load(refused)
    return [check["name"] for check in found["checks"] if not check["ok"]]


def test_the_command_serves_until_sigterm(command: "subprocess.Popen[str]", topic: str) -> None:
    assert command.stdout is not None
    messages = [json.loads(command.stdout.readline())["message"]]
    while not messages[-1].startswith("ready"):
        messages.append(json.loads(command.stdout.readline())["message"])
    address = messages[-1].removeprefix("ready: clients connect to ").partition(";")[0]
    produce_all(address, topic, [b"value"])
    metrics_port = messages[0].rpartition(" ")[2]
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=LIMIT_SECONDS) as page:
        metrics = page.read().decode()
    assert 'group_coordinator_gateway_requests_total{api="Produce",error="unread"' in metrics
    assert failing_checks(metrics_port, "live") == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", int(metrics_port)), LIMIT_SECONDS)
    # There is no coordinator.
    assert failing_checks(metrics_port, "ready") == ["coordinator", "directory"]
    command.send_signal(signal.SIGTERM)
    assert command.wait(LIMIT_SECONDS) == 0
    assert "stopped" in command.stdout.read()
