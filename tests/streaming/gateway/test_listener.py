import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from streaming.broker import EmbeddedBroker
from streaming.errors import CannotRun
from streaming.gateway.options import load_gateway_options
from streaming.options import BadOptions
from tests.streaming.gateway.certificate import Certificate
from tests.streaming.gateway.clients import LIMIT_SECONDS, consume_all, produce_all
from tests.streaming.gateway.conftest import NewGateway
from tests.streaming.gateway.in_process import RunningGateway
from tests.streaming.gateway.requests import heartbeat, metadata
from tests.streaming.gateway.test_proxy import Parking, eventually, heartbeats
from tests.streaming.gateway.wire_client import WireClient


def test_a_connection_beyond_the_limit_is_closed_and_the_others_go_on(new_gateway: NewGateway) -> None:
    running = new_gateway(None, {"max-connections": 2})
    with WireClient(running.port) as first, WireClient(running.port) as second:
        assert first.ask(metadata()).brokers
        assert second.ask(metadata()).brokers
        with WireClient(running.port) as third:
            assert third.is_closed_by_peer()
        assert first.ask(metadata()).brokers
    assert running.metric("rejected_connections_total") == 1
    eventually(lambda: running.metric("connections") == 0, "the connections are forgotten")
    with WireClient(running.port) as fourth:
        assert fourth.ask(metadata()).brokers


def test_an_idle_connection_is_closed_but_not_one_whose_request_is_parked(new_gateway: NewGateway) -> None:
    parking = Parking()
    running = new_gateway(heartbeats(parking.handle), {"connections-max-idle-ms": 2_000})
    with WireClient(running.port) as idle, WireClient(running.port) as waits:
        waits.send(heartbeat("parked"))
        eventually(lambda: "parked" in parking.arrived, "the request is begun")
        assert idle.ask(heartbeat()).error_code is ErrorCode.none
        assert idle.is_closed_by_peer()
        running.call(parking.release())
        assert waits.receive(heartbeat())[1].error_code is ErrorCode.none
    assert running.metric("idle_connections_total") >= 1


def test_what_is_in_flight_at_the_end_is_answered(new_gateway: NewGateway) -> None:
    parking = Parking()
    running = new_gateway(heartbeats(parking.handle))
    with WireClient(running.port) as waits, WireClient(running.port) as idle:
        waits.send(heartbeat("parked"))
        assert idle.ask(heartbeat()).error_code is ErrorCode.none
        eventually(lambda: "parked" in parking.arrived, "the request is begun")
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


def test_what_takes_too_long_at_the_end_is_given_up(new_gateway: NewGateway) -> None:
    parking = Parking()
    running = new_gateway(heartbeats(parking.handle), {"shutdown-grace-ms": 50})
    with WireClient(running.port) as waits:
        waits.send(heartbeat("parked"))
        eventually(lambda: parking.arrived == ["parked"], "the request is begun")
        running.call(running.server.stop())
        assert waits.is_closed_by_peer()
        assert parking.cancelled.wait(LIMIT_SECONDS)


def test_a_broker_that_was_unknown_gets_a_listener_when_an_answer_names_it(new_gateway: NewGateway) -> None:
    from streaming.gateway.addresses import Address, Broker

    running = new_gateway()
    known = running.server.cluster.brokers[1]

    async def show() -> Address | None:
        return running.server.show(Broker(7, known.address))

    shown = running.call(show())
    assert shown is not None
    assert shown.port != running.port
    with WireClient(shown.port) as client:
        assert [broker.port for broker in client.ask(metadata()).brokers] == [running.port]


def test_a_gateway_before_nobody_says_so() -> None:
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
        ({"bootstrap_servers": "b:1", "nonsense": "1"}, "no such option"),
    ],
)
def test_options_that_cannot_be_used_are_refused_by_name(flags: dict[str, object], problem: str) -> None:
    with pytest.raises(BadOptions, match=problem):
        load_gateway_options(flags)


# ---- TLS ---------------------------------------------------------------------------------------------------------


def test_clients_connect_with_tls(new_gateway: NewGateway, certificate: Certificate, topic: str) -> None:
    running = new_gateway(None, {"tls-cert": certificate.chain, "tls-key": certificate.key})
    secured = {"security.protocol": "SSL", "ssl.ca.location": certificate.authority}
    values = [os.urandom(500_000) for _ in range(20)]
    produce_all(running.bootstrap_servers, topic, values, **secured)
    assert consume_all(running.bootstrap_servers, topic, len(values), **secured) == values
    with WireClient(running.port) as plain:
        plain.send(metadata())
        assert plain.is_closed_by_peer()


def test_a_certificate_that_cannot_be_used_is_told(broker: EmbeddedBroker, tmp_path: Path) -> None:
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
        [sys.executable, "-m", "streaming.cli", *arguments], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_the_command_serves_until_it_is_told_to_stop(command: "subprocess.Popen[str]", topic: str) -> None:
    assert command.stdout is not None
    said = [json.loads(command.stdout.readline())["message"]]
    while not said[-1].startswith("ready"):
        said.append(json.loads(command.stdout.readline())["message"])
    address = said[-1].removeprefix("ready: clients connect to ").partition(";")[0]
    produce_all(address, topic, [b"value"])
    metrics_port = said[0].rpartition(" ")[2]
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=LIMIT_SECONDS) as page:
        metrics = page.read().decode()
    assert 'group_coordinator_gateway_requests_total{api="Produce",error="unread"' in metrics
    command.send_signal(signal.SIGTERM)
    assert command.wait(LIMIT_SECONDS) == 0
    assert "stopped" in command.stdout.read()
