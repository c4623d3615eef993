"""The scans find the topics that a broker would find, in requests that arrive in any pieces."""

import random
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_entity_module
from kio.schema.types import TopicName
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i64

from streaming.gateway.security.internal_topics.fetch_scan import fetched_topic_ids
from streaming.gateway.security.internal_topics.produce_scan import ProduceScan
from streaming.gateway.wire.codec import encode_request
from streaming.gateway.wire.frames import FrameRefused
from streaming.gateway.wire.steps import run_steps
from tests.gateway.support.requests import SECOND

GUARDED = "group-requests"
NAMES = st.sampled_from(["orders", "payments", GUARDED + "x", "x" + GUARDED])


def produce_frame(version: int, topics: list[tuple[str, list[bytes | None]]], transactional_id: str | None) -> bytes:
    module: Any = load_entity_module("produce", version, EntityType.request)
    data = tuple(
        module.TopicProduceData(
            name=TopicName(name),
            partition_data=tuple(
                module.PartitionProduceData(index=i32(index), records=records) for index, records in enumerate(batches)
            ),
        )
        for name, batches in topics
    )
    request = module.ProduceRequest(transactional_id=transactional_id, acks=i16(1), timeout=SECOND, topic_data=data)
    return encode_request(request, 1, "client")


TOPICS = st.lists(st.tuples(NAMES, st.lists(st.one_of(st.none(), st.binary(max_size=300)), max_size=4)), max_size=4)


@given(
    version=st.integers(3, 9),
    topics=TOPICS,
    guarded_at=st.one_of(st.none(), st.integers(0, 4)),
    transactional_id=st.one_of(st.none(), st.text(max_size=200)),
    seed=st.integers(0, 1 << 32),
)
def test_a_guarded_topic_is_found_wherever_it_is_and_however_the_bytes_arrive(
    version: int,
    topics: list[tuple[str, list[bytes | None]]],
    guarded_at: int | None,
    transactional_id: str | None,
    seed: int,
) -> None:
    if guarded_at is not None:
        topics = [*topics[:guarded_at], (GUARDED, [GUARDED.encode()]), *topics[guarded_at:]]
    # The name inside of records means nothing.
    topics = [(name, [*batches, GUARDED.encode()]) for name, batches in topics]
    frame = produce_frame(version, topics, transactional_id)
    scan = ProduceScan(version, {GUARDED})
    draw = random.Random(seed)
    at = 0
    while at < len(frame):
        size = draw.choice([1, 2, 7, 64, len(frame)])
        # A piece may repeat bytes that the scan has seen.
        begin = max(0, at - draw.choice([0, 0, 3]))
        scan.feed(frame[begin : at + size], begin)
        at += size
    assert scan.found == (guarded_at is not None)
    assert scan.found or scan.is_complete


@pytest.mark.parametrize(
    "tail",
    [b"\xff\xff\xff\xff", b"\x00\x00\x00\x01\xff\xff", b"\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"],
    ids=["null topics", "null name", "null partitions"],
)
def test_what_no_broker_accepts_is_refused(tail: bytes) -> None:
    frame = produce_frame(7, [], None)[:-4] + tail
    with pytest.raises(FrameRefused):
        ProduceScan(7, {GUARDED}).feed(frame, 0)


def test_padded_lengths_hide_no_topic() -> None:
    """Java reads a varint with leading zeros, which no encoder writes."""
    frame = produce_frame(9, [(GUARDED, [])], None)
    length = bytes([len(GUARDED) + 1])
    at = frame.index(length + GUARDED.encode())
    padded = frame[:at] + bytes([length[0] | 0x80, 0x80, 0x00]) + frame[at + 1 :]
    scan = ProduceScan(9, {GUARDED})
    scan.feed(padded, 0)
    assert scan.found


@pytest.mark.parametrize("version", [7, 9])
def test_a_request_of_empty_partitions_does_not_hold_the_gateway(version: int) -> None:
    """A million of them fit into the bytes of one request, and a broker refuses them one by one."""
    full, empty = b"x" * 61, b""
    ProduceScan(version, {GUARDED}).feed(produce_frame(version, [("orders", [full] * 3000)] * 2, None), 0)
    wasteful: list[list[tuple[str, list[bytes | None]]]] = [[("orders", [empty] * 1001)], [("orders", [])] * 1001]
    for topics in wasteful:
        with pytest.raises(FrameRefused, match="empty"):
            ProduceScan(version, {GUARDED}).feed(produce_frame(version, topics, None), 0)


@given(
    version=st.integers(13, 15),
    topics=st.lists(st.tuples(st.uuids(version=4), st.integers(0, 50)), max_size=8),
    client_id=st.text(max_size=20),
)
def test_the_ids_of_a_fetch_request_are_those_that_it_encodes(
    version: int, topics: list[tuple[uuid.UUID, int]], client_id: str
) -> None:
    frame = encode_request(fetch_by_id(version, topics), 1, client_id)
    assert found_in(frame, version) == {topic_id.bytes for topic_id, _ in topics}


def test_tagged_fields_of_a_partition_hide_no_topic() -> None:
    first, second = uuid.uuid4(), uuid.uuid4()
    frame = encode_request(fetch_by_id(15, [(first, 2), (second, 1)]), 1, "client")
    end = frame.index(second.bytes) - 1
    tagged = frame[: end - 1] + b"\x01\x63\x03abc" + frame[end:]
    assert found_in(tagged, 15) == {first.bytes, second.bytes}


def test_a_fetch_request_that_ends_in_its_topics_is_refused() -> None:
    frame = encode_request(fetch_by_id(15, [(uuid.uuid4(), 3)]), 1, "client")
    for end in range(45, len(frame) - 40):
        with pytest.raises(FrameRefused):
            found_in(frame[:end], 15)


def found_in(frame: bytes, version: int, max_entries: int = 100) -> set[bytes]:
    return run_steps(fetched_topic_ids(frame, version, max_entries))


def fetch_by_id(version: int, topics: list[tuple[uuid.UUID, int]]) -> Any:
    module: Any = load_entity_module("fetch", version, EntityType.request)
    return module.FetchRequest(
        max_wait=SECOND,
        min_bytes=i32(1),
        topics=tuple(
            module.FetchTopic(
                topic_id=topic_id,
                partitions=tuple(
                    module.FetchPartition(partition=i32(index), fetch_offset=i64(0), partition_max_bytes=i32(1 << 20))
                    for index in range(count)
                ),
            )
            for topic_id, count in topics
        ),
        forgotten_topics_data=(),
    )
