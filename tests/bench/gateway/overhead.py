"""The latency that a gateway adds to requests, and the memory that its clients' connections take.

    python -m tests.bench.gateway.overhead [--job] [--rate 1000] [--seconds 20] [--members 2000]

Broker, coordinator, gateway and load generator run on this machine. Heartbeats of the same members go to the same
coordinator on a fixed schedule: over the topics from this process, and through the gateway's sockets, alternately. The
difference is the gateway's latency. The coordinator is a stub that responds immediately: the batches of the real job
(``--job``) take many times longer than the gateway, and their duration varies.

Then ``--members`` members connect, each with a connection to its coordinator and another one that has requested
metadata from the broker, and send a heartbeat every 3 s.
"""

import argparse
import asyncio
import multiprocessing
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition
from kio.index import load_request_schema
from kio.schema.metadata.v9.request import MetadataRequest

from coordinator_logic.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MemberAssignment,
    Protocol,
    RequestEnvelope,
    ResponseEnvelope,
    SyncGroupRequest,
    SyncGroupResponse,
)
from streaming.client.request_reply import RequestReply
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from tests.bench.latency import Latency, schedule, summary
from tests.bench.usage import memory
from tests.oracle.sides.connection import Connection, Connections, framed
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.topics import create_topic
from tests.support.wire_types import to_wire

JOIN, HEARTBEAT, SYNC = (11, 5), (12, 4), (14, 3)
SESSION_MS = 60_000
HEARTBEAT_INTERVAL_SECONDS = 3.0
JOINS_AT_ONCE = 100
WARM_UP_SECONDS = 5.0
MEMORY_SECONDS = 15.0
LIMIT_SECONDS = 60.0
CORRELATION_ID_AT = 8
"""The position of the correlation id in a request frame, after length, API key and version."""


def run_stub_coordinator(bootstrap_servers: str, topics: TopicNames) -> None:
    """Respond to every request immediately, as if its member were the only one of its group."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "unused", "fetch.wait.max.ms": 10})
    consumer.assign([TopicPartition(topics.requests, 0, 0)])
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    bodies = {
        "JoinGroup": JoinGroupResponse(0, 1, "bench", "p", "m", member_id="m"),
        "SyncGroup": SyncGroupResponse(0, "bench", "p", b"all"),
        "Heartbeat": HeartbeatResponse(),
    }
    encoded = {api: msgspec.Raw(msgspec.json.encode(body)) for api, body in bodies.items()}
    while True:
        for record in consumer.consume(100, 0.001):
            request = msgspec.json.decode(record.value() or b"", type=RequestEnvelope)
            body = encoded[request.api]
            response = ResponseEnvelope(request.api, request.version, request.correlation_id, "g", 0, body)
            producer.produce(topics.responses, msgspec.json.encode(response), partition=request.reply_partition)
        producer.poll(0)


class Member:
    """A member of a group of its own, with a connection."""

    def __init__(self, group_id: str, connections: Connections) -> None:
        self.group_id = group_id
        self._connections = connections
        self.heartbeat: HeartbeatRequest
        self._frame = bytearray()
        self._sent = 0
        self._one_at_a_time = asyncio.Lock()
        self._connection: Connection

    async def join(self) -> None:
        """Join and sync as a static member, which needs no second JoinGroup."""
        self._connection = await self._connections.acquire()
        join = JoinGroupRequest(
            self.group_id, SESSION_MS, "bench", [Protocol("p", b"")], SESSION_MS, group_instance_id="member"
        )
        joined = await self._ask(to_wire(join, load_request_schema(*JOIN)))
        share = [MemberAssignment(joined.member_id, b"all")]
        sync = SyncGroupRequest(self.group_id, joined.generation_id, joined.member_id, "member", assignments=share)
        await self._ask(to_wire(sync, load_request_schema(*SYNC)))
        self.heartbeat = HeartbeatRequest(self.group_id, joined.generation_id, joined.member_id, "member")
        self._frame[:] = framed(to_wire(self.heartbeat, load_request_schema(*HEARTBEAT)), "bench", 0)

    async def _ask(self, payload: Any) -> Any:
        self._connection.send(payload, "bench")
        response = await asyncio.wait_for(self._connection.receive(payload), LIMIT_SECONDS)
        assert response.error_code.name == "none", response
        return response

    async def send_heartbeat(self) -> None:
        """Send the heartbeat, and read the response without decoding it."""
        async with self._one_at_a_time:
            self._sent += 1
            struct.pack_into(">i", self._frame, CORRELATION_ID_AT, self._sent)
            self._connection._writer.write(bytes(self._frame))
            (length,) = struct.unpack(">i", await self._connection._reader.readexactly(4))
            await self._connection._reader.readexactly(length)

    def close(self) -> None:
        self._connection.close()


async def joined_members(prefix: str, count: int, connections: Connections) -> list[Member]:
    """Join ``count`` members, each to a group of its own, a hundred at a time."""
    members = [Member(f"{prefix}-{number}", connections) for number in range(count)]
    for begin in range(0, count, JOINS_AT_ONCE):
        await asyncio.gather(*(member.join() for member in members[begin : begin + JOINS_AT_ONCE]))
    return members


async def send_on_schedule(rate: float, seconds: float, send: Callable[[int], Awaitable[None]]) -> Latency:
    """Call ``send`` on a fixed schedule; latencies count from when a request was due."""
    begin = time.perf_counter() + 0.1
    latencies: list[float] = []

    async def send_one(number: int, due: float) -> None:
        await send(number)
        latencies.append(time.perf_counter() - begin - due)

    tasks = []
    for number, due in enumerate(schedule(rate, seconds)):
        wait = begin + due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(send_one(number, due)))
    await asyncio.gather(*tasks)
    return summary(latencies)


async def compare(members: Sequence[Member], channel: RequestReply, rate: float, seconds: float) -> None:
    """Send the same heartbeats over the topics and through the gateway, alternately, and print both latencies."""

    async def through_gateway(number: int) -> None:
        await members[number % len(members)].send_heartbeat()

    async def over_topics(number: int) -> None:
        member = members[number % len(members)]
        sent = channel.send(member.group_id, "Heartbeat", 4, member.heartbeat, LIMIT_SECONDS)
        response = await asyncio.wrap_future(sent)
        assert response.error_code == 0

    await send_on_schedule(rate, WARM_UP_SECONDS, through_gateway)
    await send_on_schedule(rate, WARM_UP_SECONDS, over_topics)
    paths = {"topics": over_topics, "gateway": through_gateway}
    found: dict[str, list[Latency]] = {name: [] for name in paths}
    for _ in range(2):
        for name, send in paths.items():
            found[name].append(await send_on_schedule(rate, seconds, send))
            print(f"{name:>8}: {found[name][-1]}")
    for quantile in ("p50_ms", "p99_ms"):
        means = {name: sum(getattr(each, quantile) for each in runs) / len(runs) for name, runs in found.items()}
        added = means["gateway"] - means["topics"]
        print(f"{quantile}: topics {means['topics']:.1f}, gateway {means['gateway']:.1f}, added {added:+.1f}")


async def measure_memory(gateway: GatewayProcess, connections: Connections, count: int) -> None:
    """Print the memory of a gateway with ``count`` members that are connected and send heartbeats."""
    print(f"without members: {memory([gateway.pid])}")
    members = await joined_members("memory", count, connections)
    others = Connections(gateway.bootstrap_servers)
    metadata_connections = [await others.acquire() for _ in members]
    request = MetadataRequest(
        topics=(), include_cluster_authorized_operations=False, include_topic_authorized_operations=False
    )
    for connection in metadata_connections:
        connection.send(request, "bench")
        await connection.receive(request)
    print(f"{count} members connected, each with a second connection to the broker: {memory([gateway.pid])}")
    rate = count / HEARTBEAT_INTERVAL_SECONDS
    latency = await send_on_schedule(rate, MEMORY_SECONDS, lambda number: members[number % count].send_heartbeat())
    print(f"latency of their heartbeats: {latency}")
    print(f"after the heartbeats: {memory([gateway.pid])}")
    for member in members:
        member.close()
    for connection in metadata_connections:
        connection.close()


async def run(broker: EmbeddedBroker, topics: TopicNames, gateway: GatewayProcess, arguments: Any) -> None:
    """Measure latency and memory."""
    connections = Connections(gateway.bootstrap_servers)
    channel = RequestReply(broker.bootstrap_servers, topics, "bench", "/127.0.0.1", {}, LIMIT_SECONDS, LIMIT_SECONDS)
    try:
        members = await joined_members("compared", arguments.connections, connections)
        await compare(members, channel, arguments.rate, arguments.seconds)
        for member in members:
            member.close()
        await measure_memory(gateway, connections, arguments.members)
    finally:
        await asyncio.to_thread(channel.close)
        connections.close()


def main() -> None:
    """Measure latency and memory, and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--job", action="store_true", help="use the real coordinator")
    parser.add_argument("--rate", type=float, default=1000.0, help="heartbeats a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="duration of each measurement")
    parser.add_argument("--connections", type=int, default=1000, help="connections that send the heartbeats")
    parser.add_argument("--members", type=int, default=2000, help="members connected when memory is measured")
    arguments = parser.parse_args()
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        broker = stack.enter_context(EmbeddedBroker())
        topics = _real_coordinator(broker, stack) if arguments.job else _stub_coordinator(broker, stack)
        gateway = GatewayProcess(broker.bootstrap_servers, topics.prefix)
        stack.callback(gateway.kill)
        gateway.start()
        asyncio.run(run(broker, topics, gateway, arguments))


def _real_coordinator(broker: EmbeddedBroker, stack: ExitStack) -> TopicNames:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-overhead-")))
    options = {"profile": "latency", "group.initial.rebalance.delay.ms": 0}
    coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, options, defaults={})
    stack.callback(coordinator.kill)
    coordinator.start()
    return coordinator.topics


def _stub_coordinator(broker: EmbeddedBroker, stack: ExitStack) -> TopicNames:
    topics = TopicNames("stub-")
    for name in (topics.requests, topics.responses, topics.directory):
        create_topic(broker.bootstrap_servers, name, 1)
    arguments = (broker.bootstrap_servers, topics)
    process = multiprocessing.get_context("spawn").Process(target=run_stub_coordinator, args=arguments, daemon=True)
    process.start()
    stack.callback(process.kill)
    return topics


if __name__ == "__main__":
    main()
