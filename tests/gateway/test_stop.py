"""A gateway whose brokers do not answer: what it says, and its end."""

import json
import socket
import time

from streaming.embedded.ports import free_address
from tests.support.gateway_process import GatewayProcess
from tests.support.processes import Process

LIMIT_SECONDS = 20.0


def test_a_gateway_that_never_reached_a_broker_stops_soon() -> None:
    with GatewayProcess(free_address(), "") as gateway:
        Process.start(gateway)
        gateway.await_line("that it looks for the brokers", lambda line: "cannot" in line or "waiting" in line)
        began = time.monotonic()
        gateway.stop()
        assert time.monotonic() - began < LIMIT_SECONDS


def test_a_gateway_says_that_it_waits_for_kafka() -> None:
    # Connections are made, and nobody reads them.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with GatewayProcess(address, "") as gateway:
            Process.start(gateway)
            line = gateway.await_line("that it waits", lambda line: "waiting for Kafka" in line)
            assert json.loads(line)["message"] == f"waiting for Kafka at {address}, 10 s"
