"""What a client may take of a gateway before it has authenticated, where SASL is required."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from tests.gateway.conftest import NewGateway
from tests.gateway.support.heartbeat_handlers import answer_at_once, heartbeat_api
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import api_versions, heartbeat
from tests.gateway.support.sasl_broker import sasl_broker
from tests.gateway.support.wire_client import WireClient
from tests.support.waiting import wait_until

CONNECTIONS = 50
LIMIT_BYTES = 64 * 1024
OPTIONS = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.username": "gateway",
    "kafka.sasl.password": "gateway-secret",
}


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    """The address of a broker's listener that requires SASL."""
    with sasl_broker("SASL_PLAINTEXT", {"alice": "alice-secret", "gateway": "gateway-secret"}, {}) as (_, address):
        yield address


def start(new_gateway: NewGateway, secured: str, **options: object) -> RunningGateway:
    return new_gateway(heartbeat_api(answer_at_once), {**OPTIONS, **options}, bootstrap_servers=secured)


def authenticate(client: WireClient) -> None:
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN")).error_code is ErrorCode.none
    token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")
    assert client.ask(token).error_code is ErrorCode.none


def test_unfinished_requests_take_64_kib_at_most(new_gateway: NewGateway, secured: str) -> None:
    running = start(new_gateway, secured)
    head = b"\x00\x11\x00\x01" + bytes(4) + b"\xff\xff"
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            client = stack.enter_context(WireClient(running.port))
            client.send_bytes(LIMIT_BYTES.to_bytes(4, "big") + head + bytes(LIMIT_BYTES - 100))
        wait_until(lambda: running.metric("buffered_bytes") > CONNECTIONS * (LIMIT_BYTES - 1000), "the bytes arrive")
        assert running.metric("buffered_bytes") <= CONNECTIONS * LIMIT_BYTES
        with WireClient(running.port) as larger:
            larger.send_bytes((4 * 1024 * 1024).to_bytes(4, "big") + head + bytes(200_000))
            assert larger.is_closed_by_peer()
        with WireClient(running.port) as alice:
            authenticate(alice)
            assert alice.ask(heartbeat()).error_code is ErrorCode.none


def test_a_client_that_does_not_authenticate_in_time_is_closed_whatever_else_it_asks(
    new_gateway: NewGateway, secured: str
) -> None:
    running = start(new_gateway, secured, **{"authentication-timeout-ms": 2_000})
    with WireClient(running.port) as alice, WireClient(running.port) as silent, WireClient(running.port) as asks:
        authenticate(alice)
        assert asks.ask(api_versions()).error_code is ErrorCode.none
        assert silent.is_closed_by_peer()
        assert asks.is_closed_by_peer()
        assert alice.ask(heartbeat()).error_code is ErrorCode.none
    assert running.metric("overdue_connections_total", awaited="authentication") == 2
