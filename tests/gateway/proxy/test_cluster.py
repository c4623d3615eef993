"""What the gateway requests from the cluster for itself."""

import asyncio
import socket

from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.options import load_gateway_options
from streaming.gateway.proxy.cluster import Cluster
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS


def test_a_broker_that_does_not_answer_delays_only_the_first_request(broker: EmbeddedBroker) -> None:
    topic = unique("asked-for")
    create_topic(broker.bootstrap_servers, topic, 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]},{broker.bootstrap_servers}"
        cluster = Cluster(load_gateway_options({"bootstrap-servers": servers, "upstream-connect-timeout-ms": 100}), {})

        async def request() -> list[int]:
            async with asyncio.timeout(LIMIT_SECONDS):
                return [found.partitions for _ in range(5) for found in await cluster.topics([topic])]

        assert asyncio.run(request()) == [2] * 5
        silent.accept()[0].close()
        silent.setblocking(False)
        try:
            silent.accept()
        except BlockingIOError:
            return
    raise AssertionError("the silent broker was asked again")
