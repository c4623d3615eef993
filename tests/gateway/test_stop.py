"""The end of a gateway whose brokers do not answer."""

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
