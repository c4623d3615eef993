"""What a client may take of a gateway before it has said anything, and how long it may take to say it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from kio.schema.errors import ErrorCode

from tests.gateway.conftest import NewGateway
from tests.gateway.support.certificate import Certificate
from tests.gateway.support.heartbeat_handlers import answer_at_once, heartbeat_api
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import heartbeat, metadata
from tests.gateway.support.wire_client import WireClient
from tests.support.background_loop import BackgroundLoop
from tests.support.waiting import wait_until

HEARTBEAT_HEAD = b"\x00\x00\x10\x00" + b"\x00\x0c\x00\x04" + bytes(4)
"""The begin of a Heartbeat of 4 KiB."""


@contextmanager
def trickling(client: WireClient, seconds: float = 0.05) -> Iterator[None]:
    """Send a byte again and again while the block runs."""
    # The gateway may close the connection meanwhile.
    loop = BackgroundLoop(lambda: client.send_bytes(b"\x00"), seconds)
    try:
        yield
    finally:
        loop.end()


def accepted(running: RunningGateway) -> float:
    return running.metric("connections")


def test_an_address_has_no_more_connections_than_allowed(new_gateway: NewGateway) -> None:
    running = new_gateway(heartbeat_api(answer_at_once), {"max-connections-per-address": 2})
    with WireClient(running.port) as first, WireClient(running.port) as second:
        assert first.ask(heartbeat()).error_code is ErrorCode.none
        assert second.ask(heartbeat()).error_code is ErrorCode.none
        with WireClient(running.port) as third:
            assert third.is_closed_by_peer()
        assert running.metric("rejected_connections_total") == 1
        with socket.create_connection(("127.0.0.1", running.port), source_address=("127.0.0.2", 0)) as other:
            wait_until(lambda: accepted(running) == 3, "a connection from another address is accepted")
            other.close()
        first.close()
        wait_until(lambda: accepted(running) == 1, "the closed connections do not count any more")
        with WireClient(running.port) as fourth:
            assert fourth.ask(heartbeat()).error_code is ErrorCode.none


def test_a_tls_connection_counts_before_its_handshake(new_gateway: NewGateway, certificate: Certificate) -> None:
    options = {"tls-cert": certificate.chain, "tls-key": certificate.key, "max-connections": 3}
    running = new_gateway(None, options)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(WireClient(running.port))
        wait_until(lambda: accepted(running) == 3, "connections without a handshake are counted")
        with WireClient(running.port) as beyond:
            assert beyond.is_closed_by_peer()
    wait_until(lambda: accepted(running) == 0, "handshakes that failed do not count any more")


def test_a_stopping_gateway_ends_tls_handshakes(new_gateway: NewGateway, certificate: Certificate) -> None:
    running = new_gateway(None, {"tls-cert": certificate.chain, "tls-key": certificate.key})
    with WireClient(running.port) as silent:
        wait_until(lambda: accepted(running) == 1, "the connection is counted")
        running.call(running.server.stop())
        assert silent.is_closed_by_peer()


def test_a_request_that_does_not_arrive_in_time_closes_its_connection_however_it_trickles(
    new_gateway: NewGateway,
) -> None:
    running = new_gateway(heartbeat_api(answer_at_once), {"request-arrival-timeout-ms": 1_000})
    with WireClient(running.port) as trickles, WireClient(running.port) as waits:
        assert waits.ask(heartbeat()).error_code is ErrorCode.none
        trickles.send_bytes(HEARTBEAT_HEAD)
        with trickling(trickles):
            assert trickles.is_closed_by_peer()
        assert waits.ask(heartbeat()).error_code is ErrorCode.none
    assert running.metric("overdue_connections_total", awaited="request") == 1


def test_a_passed_request_that_does_not_arrive_in_time_closes_its_connection(new_gateway: NewGateway) -> None:
    running = new_gateway(None, {"request-arrival-timeout-ms": 1_000})
    with WireClient(running.port) as trickles:
        assert trickles.ask(metadata()).brokers
        trickles.send_bytes(b"\x00\x00\x10\x00" + b"\x00\x02\x00\x04" + bytes(4))
        with trickling(trickles):
            assert trickles.is_closed_by_peer()
    assert running.metric("overdue_connections_total", awaited="request") == 1


def test_bytes_without_a_whole_request_do_not_keep_an_idle_connection_open(new_gateway: NewGateway) -> None:
    running = new_gateway(heartbeat_api(answer_at_once), {"connections-max-idle-ms": 1_000})
    with WireClient(running.port) as trickles:
        trickles.send_bytes(HEARTBEAT_HEAD)
        with trickling(trickles):
            assert trickles.is_closed_by_peer()
    assert running.metric("idle_connections_total") == 1


def test_whole_requests_keep_a_connection_open_beyond_every_limit(new_gateway: NewGateway) -> None:
    options = {
        "connections-max-idle-ms": 3_000,
        "request-arrival-timeout-ms": 3_000,
        "authentication-timeout-ms": 3_000,
    }
    running = new_gateway(heartbeat_api(answer_at_once), options)
    with WireClient(running.port) as active, WireClient(running.port) as idle:
        ended = threading.Event()
        failures: list[Exception] = []

        def ask() -> None:
            try:
                while not ended.wait(0.1):
                    active.ask(heartbeat())
            except Exception as failure:
                failures.append(failure)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        # The idle connection shows that the limits have passed.
        assert idle.is_closed_by_peer()
        ended.set()
        thread.join()
        assert failures == []
        assert active.ask(heartbeat()).error_code is ErrorCode.none


@pytest.mark.parametrize("api_key", [17, 18, 36], ids=["SaslHandshake", "ApiVersions", "SaslAuthenticate"])
def test_a_large_request_of_those_before_authentication_is_refused_at_its_head(
    new_gateway: NewGateway, api_key: int
) -> None:
    running = new_gateway()
    head = api_key.to_bytes(2, "big") + b"\x00\x01" + bytes(4) + b"\xff\xff"
    with WireClient(running.port) as client:
        client.send_bytes((64 * 1024 + 1).to_bytes(4, "big") + head)
        assert client.is_closed_by_peer()
    assert running.metric("refused_frames_total", reason="request-too-large") == 1
