"""How fast bytes pass through a gateway's connection, against the same bytes without it.

    python -m tests.bench.gateway_throughput [--megabytes 1000]

A broker's own speed would hide the gateway's, so the other end is a process that takes and gives frames of Kafka's
form as fast as a socket allows: uploads are Produce requests of 1 MB with short answers, downloads are short Fetch
requests with answers of 1 MB. Three processes share the machine: client, gateway, other end.
"""

import argparse
import asyncio
import multiprocessing
import socket
import struct
import time
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from typing import Any, ClassVar

from kio.schema.api_versions.v0.response import ApiVersion, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16

from streaming.gateway.addresses import Address, Broker
from streaming.gateway.api_versions import ApiRanges
from streaming.gateway.connection import ClientConnection
from streaming.gateway.limits import Limits
from streaming.gateway.metrics import GatewayMetrics
from streaming.gateway.request import ServedApi
from streaming.gateway.upstream import Upstream

HOST = "127.0.0.1"
MEGABYTE = 1_000_000
HEAD = struct.Struct(">ihhih")
PRODUCE, FETCH = (0, 7), (1, 11)
PIPELINED = 5
SHORT_ANSWER = 100


def request(api: tuple[int, int], size: int) -> bytes:
    """A request of ``size`` bytes of content, with a null client id; of Produce, without a transaction and acks 1."""
    begin = HEAD.pack(size, *api, 1, -1) + struct.pack(">hh", -1, 1)
    return begin + bytes(4 + size - len(begin))


def response(size: int) -> bytes:
    """A response of ``size`` bytes of content."""
    return struct.pack(">ii", size, 1) + bytes(size - 4)


def other_end(listening: socket.socket) -> None:
    """Takes requests and answers them: Produce shortly, Fetch at length."""
    answers = {PRODUCE[0]: response(SHORT_ANSWER), FETCH[0]: response(MEGABYTE)}
    while True:
        connection, _ = listening.accept()
        with connection:
            serve(connection, answers)


def serve(connection: socket.socket, answers: dict[int, bytes]) -> None:
    """One connection, to its end."""
    while head := connection.recv(HEAD.size, socket.MSG_WAITALL):
        length, api_key, *_ = HEAD.unpack(head)
        take(connection, 4 + length - HEAD.size)
        connection.sendall(answers[api_key])


def take(connection: socket.socket, size: int) -> None:
    """Receive so many bytes and forget them."""
    buffer = memoryview(bytearray(min(size, MEGABYTE)))
    while size:
        size -= connection.recv_into(buffer, min(size, len(buffer)))


class Bare:
    """The surroundings of connections whose broker is the other end."""

    node_id = 1
    limits = Limits()
    metrics = GatewayMetrics()
    requires_sasl = False
    served: ClassVar[dict[int, ServedApi]] = {}
    keys = tuple(ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(12)) for key in (0, 1, 18))
    ranges = ApiRanges({0: ApiVersionsResponse(error_code=ErrorCode.none, api_keys=keys)}, {})

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    def show(self, _broker: Broker) -> Address | None:
        return None

    def coordinator_of(self, _group_id: str) -> Broker | None:
        return None

    def opened(self, _connection: ClientConnection) -> bool:
        return True

    def closed(self, _connection: ClientConnection) -> None:
        pass

    async def connect(self, make: Callable[[], Upstream]) -> Upstream:
        _, upstream = await asyncio.get_running_loop().create_connection(make, *self._address)
        return upstream


def gateway(listening: socket.socket, upstream: tuple[str, int]) -> None:
    """Connections of the gateway, without a cluster around them."""

    async def run() -> None:
        around = Bare(upstream)
        server = await asyncio.get_running_loop().create_server(lambda: ClientConnection(around), sock=listening)
        await server.serve_forever()

    asyncio.run(run())


def measure(address: tuple[str, int], api: tuple[int, int], size: int, answer: int, count: int) -> float:
    """Seconds for ``count`` requests, some of them in flight at a time."""
    with socket.create_connection(address) as connection:
        frame = request(api, size)
        started = time.perf_counter()
        owed = 0
        for _ in range(count):
            connection.sendall(frame)
            owed += 1
            if owed == PIPELINED:
                take(connection, answer + 4)
                owed -= 1
        take(connection, owed * (answer + 4))
        return time.perf_counter() - started


def in_process(work: Callable[..., Any], *arguments: Any) -> ForkProcess:
    """A process that ends with this one."""
    process = multiprocessing.get_context("fork").Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=1000, help="in each direction")
    arguments = parser.parse_args()
    ends = [socket.create_server((HOST, 0)) for _ in range(2)]
    direct, through = (end.getsockname() for end in ends)
    processes = [in_process(other_end, ends[0]), in_process(gateway, ends[1], direct)]
    try:
        for name, api, size, answer in (
            ("upload", PRODUCE, MEGABYTE, SHORT_ANSWER),
            ("download", FETCH, SHORT_ANSWER, MEGABYTE),
        ):
            speeds = [
                arguments.megabytes / measure(address, api, size, answer, arguments.megabytes)
                for address in (direct, through)
            ]
            print(
                f"{name}: {speeds[0]:.0f} MB/s without, {speeds[1]:.0f} MB/s through the gateway, "
                f"ratio {speeds[1] / speeds[0]:.2f}"
            )
    finally:
        for process in processes:
            process.terminate()
            process.join()


if __name__ == "__main__":
    main()
