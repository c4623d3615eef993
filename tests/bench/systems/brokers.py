"""The same load for the coordinator inside a broker, over Kafka's own protocol."""

import asyncio
import struct
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from kio.index import load_request_schema

from coordinator_logic.apis import APIS
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    MemberAssignment,
    Message,
    Protocol,
    SyncGroupRequest,
)
from tests.bench.events import SESSION_TIMEOUT_MS, TICK_SECONDS, Membership
from tests.bench.latency import Timings
from tests.oracle.sides.connection import LENGTH, Connections, framed
from tests.support.wire_types import from_wire, to_wire

CONNECTIONS = 8
"""Heartbeats are pipelined on these; a broker processes the requests of a connection in order."""

LIMIT_SECONDS = 60.0
JOIN_VERSION = 9
SYNC_VERSION = 5
HEARTBEAT_VERSION = 4
PAUSE_SECONDS = 0.05

CORRELATION_ID = struct.Struct(">i")
CORRELATION_ID_AT = 8
"""The position in a request frame, after its length, API key and version."""

HEARTBEAT_RESPONSE = struct.Struct(">ixih")
"""Correlation id, an empty list of tagged fields, throttle time, error code."""


def form_groups(bootstrap_servers: str, group_ids: Sequence[str], members: int) -> tuple[list[Membership], list[float]]:
    """Form groups of ``members`` members, all at the same time, each member on a connection of its own.

    Returns the members, and for each group the seconds from its first JoinGroup to its last assignment.
    """
    return asyncio.run(_form_groups(bootstrap_servers, group_ids, members))


def send_on_schedule(bootstrap_servers: str, members: Sequence[Membership], times: Sequence[float]) -> Timings:
    """Send heartbeats of all members, one at each of ``times`` (seconds from now); wait for the responses."""
    return asyncio.run(_send_on_schedule(bootstrap_servers, members, times))


def _request(api: str, version: int, body: Message) -> Any:
    key = APIS[api].key
    assert key is not None
    return to_wire(body, load_request_schema(key, version))


async def _form_groups(
    bootstrap_servers: str, group_ids: Sequence[str], members: int
) -> tuple[list[Membership], list[float]]:
    connections = Connections(bootstrap_servers)
    try:
        formed = await asyncio.gather(*(_form(connections, group_id, members) for group_id in group_ids))
    finally:
        connections.close()
    return [member for joined, _ in formed for member in joined], [seconds for _, seconds in formed]


async def _form(connections: Connections, group_id: str, members: int) -> tuple[list[Membership], float]:
    began = time.perf_counter()
    joined = await asyncio.gather(*(_join(connections, group_id) for _ in range(members)))
    return list(joined), time.perf_counter() - began


async def _join(connections: Connections, group_id: str) -> Membership:
    async def ask(api: str, version: int, body: Message) -> Any:
        payload = await connections.ask(_request(api, version, body), "bench")
        return from_wire(payload, APIS[api].response_type)

    request = JoinGroupRequest(group_id, SESSION_TIMEOUT_MS, "bench", [Protocol("one", b"")], SESSION_TIMEOUT_MS)
    joined = await ask("JoinGroup", JOIN_VERSION, request)
    # A new broker answers COORDINATOR_LOAD_IN_PROGRESS at first.
    while joined.error_code:
        if joined.error_code != Error.MEMBER_ID_REQUIRED:
            await asyncio.sleep(PAUSE_SECONDS)
        joined = await ask("JoinGroup", JOIN_VERSION, msgspec.structs.replace(request, member_id=joined.member_id))
    assignments = [MemberAssignment(member.member_id, b"something") for member in joined.members]
    sync = SyncGroupRequest(
        group_id,
        joined.generation_id,
        joined.member_id,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        assignments=assignments,
    )
    synced = await ask("SyncGroup", SYNC_VERSION, sync)
    if synced.error_code:
        raise RuntimeError(f"SyncGroup of group {group_id} failed: {synced}")
    return Membership(group_id, joined.member_id, joined.generation_id)


class _Pipeline(asyncio.Protocol):
    """A connection on which requests are sent without waiting for earlier responses."""

    def __init__(self, due: dict[int, float], timings: Timings) -> None:
        self._due = due
        self._timings = timings
        self._received = bytearray()
        self.refused = 0
        self.to_send = bytearray()

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        received = self._received
        received += data
        start = 0
        while len(received) - start >= LENGTH.size:
            (length,) = LENGTH.unpack_from(received, start)
            if len(received) - start - LENGTH.size < length:
                break
            number, _throttle, error = HEARTBEAT_RESPONSE.unpack_from(received, start + LENGTH.size)
            was_due = self._due.pop(number)
            self._timings.latencies.append(now - was_due)
            self._timings.due.append(was_due)
            self.refused += error != Error.NONE
            start += LENGTH.size + length
        del received[:start]


async def _send_on_schedule(bootstrap_servers: str, members: Sequence[Membership], times: Sequence[float]) -> Timings:
    frames = [
        bytearray(
            framed(_request("Heartbeat", HEARTBEAT_VERSION, HeartbeatRequest(group, generation, member)), "bench", 0)
        )
        for group, member, generation in members
    ]
    host, port = bootstrap_servers.rsplit(":", 1)
    due: dict[int, float] = {}
    timings = Timings([], [], [], 0)
    loop = asyncio.get_running_loop()
    opened = [
        await loop.create_connection(lambda: _Pipeline(due, timings), host, int(port)) for _ in range(CONNECTIONS)
    ]
    begin = time.perf_counter()
    give_up = begin + times[-1] + LIMIT_SECONDS
    sent = 0
    while (sent < len(times) or due) and time.perf_counter() < give_up:
        while sent < len(times) and begin + times[sent] <= time.perf_counter():
            frame = frames[sent % len(frames)]
            CORRELATION_ID.pack_into(frame, CORRELATION_ID_AT, sent)
            opened[sent % CONNECTIONS][1].to_send += frame
            due[sent] = begin + times[sent]
            timings.late.append(time.perf_counter() - due[sent])
            sent += 1
        for transport, pipeline in opened:
            if pipeline.to_send:
                transport.write(bytes(pipeline.to_send))
                pipeline.to_send.clear()
        await asyncio.sleep(TICK_SECONDS)
    for transport, _ in opened:
        transport.close()
    return timings._replace(
        due=[was_due - begin for was_due in timings.due],
        failed=len(due) + sum(pipeline.refused for _, pipeline in opened),
    )
