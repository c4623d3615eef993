"""What a gateway adds to a request's way over the topics, and what its clients' connections cost it.

    python -m tests.bench.gateway_overhead [--job] [--rate 1000] [--seconds 20] [--members 2000]

Broker, coordinator, gateway and load run on this machine. The same heartbeats of the same members go to the same
coordinator, at fixed times: over the topics from this process, and through the gateway's sockets, in turns. The
difference is what the gateway costs. The coordinator is one that answers everything at once, since the batches of the
real job (``--job``) take many times longer than the gateway, and never equally long.

Then ``--members`` members are connected, each with a connection to its coordinator and one that has asked the real
broker for metadata, and send heartbeats every 3 s.
"""

import argparse
import asyncio
import json
import multiprocessing
import struct
import subprocess
import sys
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
from streaming.broker import EmbeddedBroker
from streaming.client.request_reply import RequestReply
from streaming.gateway.projection import to_wire
from streaming.topics import TopicNames
from tests.bench.latency import Latency, schedule, summary
from tests.bench.usage import memory
from tests.oracle.connection import Connection, Connections, framed
from tests.streaming.client_support import create_topic
from tests.streaming.coordinator_process import CoordinatorProcess

JOIN, HEARTBEAT, SYNC = (11, 5), (12, 4), (14, 3)
SESSION_MS = 60_000
HEARTBEAT_INTERVAL_SECONDS = 3.0
JOINS_AT_ONCE = 100
WARM_UP_SECONDS = 5.0
LIMIT_SECONDS = 60.0
CORRELATION_ID_AT = 8
"""Where in a request frame its correlation id stands, behind length, API key and version."""


def answer_at_once(bootstrap_servers: str, topics: TopicNames) -> None:
    """A coordinator that takes every member for the only one of its group."""
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
            answer = ResponseEnvelope(request.api, request.version, request.correlation_id, "g", 0, body)
            producer.produce(topics.responses, msgspec.json.encode(answer), partition=request.reply_partition)
        producer.poll(0)


class Gateway:
    """``group-coordinator gateway`` as a process."""

    def __init__(self, bootstrap_servers: str, topic_prefix: str) -> None:
        command = [sys.executable, "-m", "streaming.cli", "gateway", "--json", "--listen", "127.0.0.1:0"]
        command += ["--bootstrap-servers", bootstrap_servers, "--topic-prefix", topic_prefix]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line) if line.startswith("{") else {}
            if said.get("ready"):
                self.bootstrap_servers = said["message"].split("clients connect to ")[1].split(";")[0]
                return
        raise AssertionError("the gateway did not start")

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()


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
        """Join and sync. A static member is let in at once, without being given an id first."""
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
        answer = await asyncio.wait_for(self._connection.receive(payload), LIMIT_SECONDS)
        assert answer.error_code.name == "none", answer
        return answer

    async def beat(self) -> None:
        """Send the heartbeat, and wait for any answer without looking into it."""
        async with self._one_at_a_time:
            self._sent += 1
            struct.pack_into(">i", self._frame, CORRELATION_ID_AT, self._sent)
            self._connection._writer.write(bytes(self._frame))
            (length,) = struct.unpack(">i", await self._connection._reader.readexactly(4))
            await self._connection._reader.readexactly(length)

    def close(self) -> None:
        self._connection.close()


async def joined_members(prefix: str, count: int, connections: Connections) -> list[Member]:
    """Members in groups of their own, a hundred at a time."""
    members = [Member(f"{prefix}-{number}", connections) for number in range(count)]
    for begin in range(0, count, JOINS_AT_ONCE):
        await asyncio.gather(*(member.join() for member in members[begin : begin + JOINS_AT_ONCE]))
    return members


async def on_schedule(rate: float, seconds: float, send: Callable[[int], Awaitable[None]]) -> Latency:
    """Send at fixed times; latencies count from when a request was due."""
    begin = time.perf_counter() + 0.1
    latencies: list[float] = []

    async def one(number: int, due: float) -> None:
        await send(number)
        latencies.append(time.perf_counter() - begin - due)

    tasks = []
    for number, due in enumerate(schedule(rate, seconds)):
        wait = begin + due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(number, due)))
    await asyncio.gather(*tasks)
    return summary(latencies)


async def compare(members: Sequence[Member], channel: RequestReply, rate: float, seconds: float) -> None:
    """The same heartbeats both ways, in turns."""

    async def through(number: int) -> None:
        await members[number % len(members)].beat()

    async def over_topics(number: int) -> None:
        member = members[number % len(members)]
        sent = channel.send(member.group_id, "Heartbeat", 4, member.heartbeat, LIMIT_SECONDS)
        answer = await asyncio.wrap_future(sent)
        assert answer.error_code == 0

    await on_schedule(rate, WARM_UP_SECONDS, through)
    await on_schedule(rate, WARM_UP_SECONDS, over_topics)
    ways = {"topics": over_topics, "gateway": through}
    found: dict[str, list[Latency]] = {name: [] for name in ways}
    for _ in range(2):
        for name, send in ways.items():
            found[name].append(await on_schedule(rate, seconds, send))
            print(f"{name:>8}: {found[name][-1]}")
    for quantile in ("p50_ms", "p99_ms"):
        means = {name: sum(getattr(each, quantile) for each in runs) / len(runs) for name, runs in found.items()}
        added = means["gateway"] - means["topics"]
        print(f"{quantile}: topics {means['topics']:.1f}, gateway {means['gateway']:.1f}, added {added:+.1f}")


async def weigh(gateway: Gateway, connections: Connections, count: int) -> None:
    """Memory of a gateway with so many members that are connected and beat."""
    print(f"idle: {memory([gateway.pid])}")
    members = await joined_members("weighed", count, connections)
    others = Connections(gateway.bootstrap_servers)
    asking = [await others.acquire() for _ in members]
    request = MetadataRequest(
        topics=(), include_cluster_authorized_operations=False, include_topic_authorized_operations=False
    )
    for connection in asking:
        connection.send(request, "bench")
        await connection.receive(request)
    print(f"{count} members connected, each with a second connection that passes: {memory([gateway.pid])}")
    rate = count / HEARTBEAT_INTERVAL_SECONDS
    print(f"beating: {await on_schedule(rate, 15.0, lambda number: members[number % count].beat())}")
    print(f"and after heartbeats: {memory([gateway.pid])}")
    for member in members:
        member.close()
    for connection in asking:
        connection.close()


async def run(broker: EmbeddedBroker, topics: TopicNames, gateway: Gateway, asked: Any) -> None:
    """Measure both."""
    connections = Connections(gateway.bootstrap_servers)
    channel = RequestReply(broker.bootstrap_servers, topics, "bench", "/127.0.0.1", {}, LIMIT_SECONDS)
    try:
        members = await joined_members("compared", asked.connections, connections)
        await compare(members, channel, asked.rate, asked.seconds)
        for member in members:
            member.close()
        await weigh(gateway, connections, asked.members)
    finally:
        await asyncio.to_thread(channel.close)
        connections.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--job", action="store_true", help="with the real coordinator")
    parser.add_argument("--rate", type=float, default=1000.0, help="heartbeats a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--connections", type=int, default=1000, help="over which the heartbeats come")
    parser.add_argument("--members", type=int, default=2000, help="connected when memory is weighed")
    asked = parser.parse_args()
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        broker = stack.enter_context(EmbeddedBroker())
        topics = _real_coordinator(broker, stack) if asked.job else _quick_coordinator(broker, stack)
        gateway = Gateway(broker.bootstrap_servers, topics.prefix)
        stack.callback(gateway.stop)
        asyncio.run(run(broker, topics, gateway, asked))


def _real_coordinator(broker: EmbeddedBroker, stack: ExitStack) -> TopicNames:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-overhead-")))
    options = {"trigger-interval-ms": 0, "spark.driver.defaultJavaOptions": "", "response-partitions": 8}
    coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, options)
    stack.callback(coordinator.kill)
    coordinator.start()
    return coordinator.topics


def _quick_coordinator(broker: EmbeddedBroker, stack: ExitStack) -> TopicNames:
    topics = TopicNames("quick-")
    for name in (topics.requests, topics.responses, topics.directory):
        create_topic(broker.bootstrap_servers, name, 1)
    arguments = (broker.bootstrap_servers, topics)
    process = multiprocessing.get_context("spawn").Process(target=answer_at_once, args=arguments, daemon=True)
    process.start()
    stack.callback(process.kill)
    return topics


if __name__ == "__main__":
    main()
