"""The guard checks large requests between those of other connections, and refuses what has too many entries."""

import asyncio
import itertools
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest
from kio.index import load_entity_module
from kio.static.constants import EntityType
from kio.static.primitive import i32, i64

from streaming.contract.topics import TopicNames
from streaming.gateway.limits import GatewayLimits
from streaming.gateway.security.internal_topics.catalog import FOREIGN_IDS, InternalTopics
from streaming.gateway.security.internal_topics.guard import TopicGuard, Verdict, VerdictKind
from streaming.gateway.security.internal_topics.rules import InternalTopicRules
from streaming.gateway.wire import loop_share
from streaming.gateway.wire.codec import decode_request, encode_request
from streaming.gateway.wire.frames import ByteBuffer, FrameRefused, RefusalReason, parse_request_head
from streaming.gateway.wire.loop_share import LoopShare
from streaming.gateway.wire.steps import ENTRIES_PER_STEP
from tests.gateway.security.internal_topics.test_scans import fetch_by_id, produce_frame
from tests.gateway.support.requests import SECOND

NAMES = TopicNames()
INTERNAL = uuid.UUID(int=7)
MANY = 20_000
NUMBERS = itertools.count(1_000)
MAX_FRAME_BYTES = 1 << 26


async def internal_ids(_names: Collection[str]) -> Mapping[bytes, str]:
    return {INTERNAL.bytes: NAMES.requests}


def varint(value: int) -> bytes:
    encoded = b""
    while value >= 0x80:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def by_id(*topics: tuple[uuid.UUID, int]) -> bytes:
    return encode_request(fetch_by_id(15, list(topics)), 1, "client")


def many_ids() -> list[tuple[uuid.UUID, int]]:
    return [(uuid.uuid4(), 0) for _ in range(MANY)]


def many_tagged_fields() -> bytes:
    """A Fetch request with one partition, which has many tagged fields of no bytes."""
    frame = by_id((INTERNAL, 1))
    at = frame.index(INTERNAL.bytes) + 16 + 1 + 32
    tagged = frame[4:at] + varint(MANY) + b"\x63\x00" * MANY + frame[at + 1 :]
    return len(tagged).to_bytes(4, "big") + tagged


def by_name(topics: Mapping[str, int]) -> bytes:
    module: Any = load_entity_module("fetch", 12, EntityType.request)
    request = module.FetchRequest(
        max_wait=SECOND,
        min_bytes=i32(1),
        topics=tuple(
            module.FetchTopic(
                topic=name,
                partitions=tuple(
                    module.FetchPartition(partition=i32(index), fetch_offset=i64(0), partition_max_bytes=i32(1))
                    for index in range(count)
                ),
            )
            for name, count in topics.items()
        ),
        forgotten_topics_data=(),
    )
    return encode_request(request, 1, "client")


async def verdict_on(frame: bytes, limits: GatewayLimits | None = None) -> tuple[Verdict, int]:
    """The verdict of a new guard, and how often the event loop could turn to others until then."""
    changed, received = asyncio.Event(), ByteBuffer()
    topics = InternalTopics(InternalTopicRules(NAMES, []), internal_ids)
    guard = TopicGuard(topics, limits or GatewayLimits(), LoopShare(), changed.set, pytest.fail)
    received.feed(frame)
    head = parse_request_head(received, MAX_FRAME_BYTES)
    assert head is not None
    passes = 0
    while (verdict := guard.check(head, received, "User:ANONYMOUS")).kind is VerdictKind.BLOCKED:
        while not changed.is_set():
            passes += 1
            await asyncio.sleep(0)
        changed.clear()
    # It stays the same until the request leaves, as when the broker's connection is not open yet.
    again = guard.check(head, received, "User:ANONYMOUS")
    assert (again.kind, again.rest) == (verdict.kind, verdict.rest)
    return verdict, passes


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: by_id(*many_ids()), VerdictKind.PASS),
        (many_tagged_fields, VerdictKind.REFUSE),
        (lambda: by_id(*many_ids(), (INTERNAL, 1)), VerdictKind.REFUSE),
        (lambda: by_name({NAMES.requests: 1, "orders": MANY}), VerdictKind.REFUSE),
    ],
    ids=["topics", "tagged fields", "topics and an internal one", "partitions and an internal topic"],
)
def test_a_large_request_is_checked_between_those_of_other_connections(
    make: Callable[[], bytes], kind: VerdictKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_share, "SLICE_SECONDS", 0.0)
    verdict, passes = asyncio.run(verdict_on(make()))
    assert verdict.kind is kind
    assert passes >= MANY // ENTRIES_PER_STEP


def test_what_is_left_of_a_large_request_goes_to_the_broker() -> None:
    verdict, _ = asyncio.run(verdict_on(by_name({NAMES.requests: 1, "orders": MANY})))
    assert verdict.rest is not None
    client_id, rest = decode_request(verdict.rest, 1, 12)
    assert (client_id, [(topic.topic, len(topic.partitions)) for topic in rest.topics]) == (
        "client",
        [("orders", MANY)],
    )


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("records", [b"x" * 61, b"x" * 20_000], ids=["small", "large"])
def test_the_refused_topic_of_a_produce_request_is_left_out(version: int, records: bytes) -> None:
    topics: list[tuple[str, list[bytes | None]]] = [("orders", [records]), (NAMES.requests, [records])]
    verdict, _ = asyncio.run(verdict_on(produce_frame(version, topics, None)))
    assert verdict.rest == produce_frame(version, topics[:1], None)
    assert verdict.refusal is not None


@pytest.mark.parametrize(
    "make",
    [
        lambda: by_id(*many_ids()),
        many_tagged_fields,
        lambda: by_name({NAMES.requests: 1, "orders": MANY}),
        lambda: by_name({NAMES.requests: 1_000}),
    ],
    ids=["topics", "tagged fields", "partitions and an internal topic", "partitions of an internal topic"],
)
def test_a_request_with_too_many_entries_is_refused(make: Callable[[], bytes]) -> None:
    with pytest.raises(FrameRefused) as refused:
        asyncio.run(verdict_on(make(), GatewayLimits(max_request_entries=10_000)))
    assert refused.value.reason is RefusalReason.TOO_MANY_ENTRIES


def test_ids_are_resolved_as_fast_when_others_are_forgotten_for_them() -> None:
    """Some ten thousand ids in a request, of a client that never asks for the same ones again."""

    async def measured() -> tuple[float, float]:
        topics = InternalTopics(InternalTopicRules(NAMES, []), internal_ids)
        first = await cpu_seconds(topics, new_ids(MANY))
        for _ in range(2):
            await topics.resolve(new_ids(FOREIGN_IDS))
        return first, await cpu_seconds(topics, new_ids(MANY))

    first, later = (min(times) for times in zip(*(asyncio.run(measured()) for _ in range(2)), strict=True))
    assert later < 8 * first


def test_all_ids_of_the_largest_request_are_known_at_the_same_time() -> None:
    async def unknown() -> int:
        topics = InternalTopics(InternalTopicRules(NAMES, []), internal_ids)
        await topics.resolve(new_ids(FOREIGN_IDS // 2))
        largest = new_ids(2 * FOREIGN_IDS)
        await topics.resolve(largest)
        return len(topics.unknown(largest))

    assert asyncio.run(unknown()) == 0


def new_ids(count: int) -> set[bytes]:
    return {next(NUMBERS).to_bytes(16, "big") for _ in range(count)}


async def cpu_seconds(topics: InternalTopics, ids: set[bytes]) -> float:
    begin = time.process_time()
    await topics.resolve(ids)
    return time.process_time() - begin
