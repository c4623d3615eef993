"""The throughput of a connection through the gateway, relative to a direct connection.

    python -m tests.bench.gateway.throughput [--megabytes 1000]

A real broker's speed would hide the gateway's. So the upstream is a process that receives and sends Kafka's frames as
fast as a socket allows: uploads are Produce requests of 1 MB with short responses, downloads are short Fetch requests
with responses of 1 MB. Three processes share the machine: client, gateway, upstream.
"""

import argparse
import asyncio
import multiprocessing
import socket
import struct
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from multiprocessing.context import ForkProcess
from typing import Any

from kio.schema.api_versions.v0.response import ApiVersion, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16

from streaming.contract.topics import TopicNames
from streaming.gateway.instrumentation import GatewayMetrics
from streaming.gateway.options import GatewayOptions
from streaming.gateway.proxy.admission.acceptor import Acceptor, OpenConnections
from streaming.gateway.proxy.admission.request_memory import RequestMemory
from streaming.gateway.proxy.api_versions import ApiRanges
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.proxy.connection import ClientConnection
from streaming.gateway.proxy.listener_context import ListenerContext
from streaming.gateway.proxy.upstream import Upstream
from streaming.gateway.security.internal_topics.catalog import InternalTopics
from streaming.gateway.security.internal_topics.rules import InternalTopicRules
from streaming.gateway.wire.brokers import Broker
from streaming.gateway.wire.loop_share import LoopShare

HOST = "127.0.0.1"
MEGABYTE = 1_000_000
HEAD = struct.Struct(">ihhih")
PRODUCE, FETCH = (0, 7), (1, 11)
PIPELINED = 5
SHORT_RESPONSE = 100
TOPIC, TIMEOUT_MS = b"throughput", 30_000


def request(api: tuple[int, int], size: int) -> bytes:
    """Return a frame with ``size`` bytes of content and a null client id; a Produce request has one partition."""
    begin = HEAD.pack(size, *api, 1, -1)
    if api == PRODUCE:
        begin += struct.pack(">hhiih", -1, 1, TIMEOUT_MS, 1, len(TOPIC)) + TOPIC
        begin += struct.pack(">iii", 1, 0, size - len(begin) - struct.calcsize(">iii") + 4)
    return begin + bytes(4 + size - len(begin))


def response(size: int) -> bytes:
    """Return a frame with ``size`` bytes of content."""
    return struct.pack(">ii", size, 1) + bytes(size - 4)


def serve_upstream(listening: socket.socket) -> None:
    """Answer Produce requests with short responses, and Fetch requests with long ones."""
    responses = {PRODUCE[0]: response(SHORT_RESPONSE), FETCH[0]: response(MEGABYTE)}
    while True:
        connection, _ = listening.accept()
        with connection:
            serve_connection(connection, responses)


def serve_connection(connection: socket.socket, responses: dict[int, bytes]) -> None:
    """Answer the requests of one connection until it is closed."""
    while head := connection.recv(HEAD.size, socket.MSG_WAITALL):
        length, api_key, *_ = HEAD.unpack(head)
        discard(connection, 4 + length - HEAD.size)
        connection.sendall(responses[api_key])


def discard(connection: socket.socket, size: int) -> None:
    """Receive ``size`` bytes, and discard them."""
    buffer = memoryview(bytearray(min(size, MEGABYTE)))
    while size:
        size -= connection.recv_into(buffer, min(size, len(buffer)))


async def no_ids(_names: Collection[str]) -> Mapping[bytes, str]:
    """The upstream process has no topics."""
    return {}


class UpstreamOnlyContext(ListenerContext):
    """A listener context without a cluster: every connection's broker is the upstream process."""

    keys = tuple(ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(12)) for key in (0, 1, 18))
    ranges = ApiRanges({0: ApiVersionsResponse(error_code=ErrorCode.none, api_keys=keys)}, {})

    def __init__(self, address: tuple[str, int]) -> None:
        options = GatewayOptions(bootstrap_servers="{}:{}".format(*address))
        super().__init__(
            node_id=1,
            options=options,
            cluster=Cluster(options, {}),
            served={},
            metrics=GatewayMetrics(),
            internal_topics=InternalTopics(InternalTopicRules(TopicNames()), no_ids),
            loop_share=LoopShare(),
            request_memory=RequestMemory(options.limits.queued_max_request_bytes),
            advertise=lambda _broker: None,
            register=lambda _connection: None,
            unregister=lambda _connection: None,
            topics_changed=lambda _deleted: None,
            is_first=True,
        )

    def brokers_last_named(self) -> Sequence[Broker]:
        return ()

    def coordinator_of(self, _group_id: str) -> Broker | None:
        return None

    async def connect(self, make: Callable[[], Upstream]) -> Upstream:
        server = self.options.bootstrap_servers.split(":")
        _, upstream = await asyncio.get_running_loop().create_connection(make, server[0], int(server[1]))
        return upstream


def serve_gateway(listening: socket.socket, upstream: tuple[str, int]) -> None:
    """Serve gateway connections to the upstream process."""

    async def run() -> None:
        context = UpstreamOnlyContext(upstream)
        opened = OpenConnections(context.options.limits, context.metrics)
        accepting = Acceptor(listening, None, opened, partial(ClientConnection, context))
        await asyncio.Event().wait()
        accepting.close()

    asyncio.run(run())


def measure(address: tuple[str, int], api: tuple[int, int], size: int, response_size: int, count: int) -> float:
    """Return the seconds for ``count`` requests, of which :data:`PIPELINED` are in flight at a time."""
    with socket.create_connection(address) as connection:
        frame = request(api, size)
        started = time.perf_counter()
        in_flight = 0
        for _ in range(count):
            connection.sendall(frame)
            in_flight += 1
            if in_flight == PIPELINED:
                discard(connection, response_size + 4)
                in_flight -= 1
        discard(connection, in_flight * (response_size + 4))
        return time.perf_counter() - started


def in_process(work: Callable[..., Any], *arguments: Any) -> ForkProcess:
    """Run ``work`` in a process that ends with this one."""
    process = multiprocessing.get_context("fork").Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def main() -> None:
    """Measure uploads and downloads, and print the rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=1000, help="in each direction")
    arguments = parser.parse_args()
    ends = [socket.create_server((HOST, 0)) for _ in range(2)]
    direct, through = (end.getsockname() for end in ends)
    processes = [in_process(serve_upstream, ends[0]), in_process(serve_gateway, ends[1], direct)]
    try:
        for name, api, size, response_size in (
            ("upload", PRODUCE, MEGABYTE, SHORT_RESPONSE),
            ("download", FETCH, SHORT_RESPONSE, MEGABYTE),
        ):
            speeds = [
                arguments.megabytes / measure(address, api, size, response_size, arguments.megabytes)
                for address in (direct, through)
            ]
            print(
                f"{name}: {speeds[0]:.0f} MB/s direct, {speeds[1]:.0f} MB/s through the gateway, "
                f"ratio {speeds[1] / speeds[0]:.2f}"
            )
    finally:
        for process in processes:
            process.terminate()
            process.join()


if __name__ == "__main__":
    main()
