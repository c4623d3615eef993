"""Requests and responses are parsed as soon as enough bytes have arrived, and invalid ones are refused."""

import pytest

from streaming.gateway.wire.api_keys import PRODUCE
from streaming.gateway.wire.codec import KNOWN_VERSIONS, encode_request
from streaming.gateway.wire.frames import (
    MAX_BYTES_BEFORE_ACKS,
    MIN_REQUEST_BYTES,
    ByteBuffer,
    FrameRefused,
    RefusalReason,
    RequestHead,
    parse_acks,
    parse_request_head,
    parse_response_head,
)
from tests.gateway.support.requests import heartbeat, produce

LARGEST = 1_000_000


def buffer_of(data: bytes) -> ByteBuffer:
    received = ByteBuffer()
    received.feed(data)
    return received


def head_of(received: ByteBuffer) -> RequestHead:
    head = parse_request_head(received, LARGEST)
    assert head is not None
    return head


def test_bytes_are_taken_in_the_order_of_their_arrival() -> None:
    received = buffer_of(b"abc")
    received.feed(b"defg")
    assert received.peek(4) == b"abcd"
    assert received.read(5) == b"abcde"
    assert received.read(5) == b"fg"
    assert len(received) == 0


def test_a_head_is_parsed_once_all_its_bytes_have_arrived() -> None:
    frame = encode_request(heartbeat(), 7, "client")
    received = ByteBuffer()
    for size in range(12):
        assert parse_request_head(received, LARGEST) is None
        received.feed(frame[size : size + 1])
    assert parse_request_head(received, LARGEST) == RequestHead(len(frame) - 4, 12, 4, 7)


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, MIN_REQUEST_BYTES - 1])
def test_a_length_that_is_too_small_for_a_request_is_refused(length: int) -> None:
    with pytest.raises(FrameRefused) as refused:
        parse_request_head(buffer_of(length.to_bytes(4, "big", signed=True)), LARGEST)
    assert refused.value.reason is RefusalReason.FRAME_LENGTH


def test_a_length_beyond_the_limit_is_refused_before_further_bytes_arrive() -> None:
    with pytest.raises(FrameRefused) as refused:
        parse_request_head(buffer_of((LARGEST + 1).to_bytes(4, "big")), LARGEST)
    assert refused.value.reason is RefusalReason.FRAME_TOO_LARGE
    assert parse_request_head(buffer_of(LARGEST.to_bytes(4, "big")), LARGEST) is None


@pytest.mark.parametrize("client_id", ["", "client", "ü" * 2000])
@pytest.mark.parametrize("transactional_id", [None, "", "t", "x" * 30_000])
@pytest.mark.parametrize("version", range(KNOWN_VERSIONS[PRODUCE][0], KNOWN_VERSIONS[PRODUCE][1] + 1))
def test_acks_are_parsed_in_every_version_of_produce(
    version: int, transactional_id: str | None, client_id: str
) -> None:
    for acks in (0, 1, -1):
        frame = encode_request(produce(version, acks=acks, transactional_id=transactional_id), 1, client_id)
        received = buffer_of(frame)
        assert parse_acks(received, head_of(received)) == acks


@pytest.mark.parametrize("version", [7, 9])
def test_acks_are_parsed_once_their_bytes_have_arrived(version: int) -> None:
    frame = encode_request(produce(version, acks=0, transactional_id="transaction"), 1, "client")
    received = buffer_of(frame[:12])
    head = head_of(received)
    read = []
    for at in range(12, len(frame)):
        read.append(parse_acks(received, head))
        received.feed(frame[at : at + 1])
    known_from = read.index(0)
    assert set(read[:known_from]) == {None}
    assert set(read[known_from:]) == {0}


def test_acks_come_first_in_versions_below_3() -> None:
    frame = encode_request(produce(7, acks=0, transactional_id=None), 1, "client")
    header = frame[:20]
    old = bytearray(header + frame[22:])
    old[6:8] = (2).to_bytes(2, "big")
    old[:4] = (len(old) - 4).to_bytes(4, "big")
    received = buffer_of(bytes(old))
    assert parse_acks(received, head_of(received)) == 0


@pytest.mark.parametrize("begin", [b"\xff\xf0", b"\x7f\xff" + bytes(10), b"\x00\x02\xff\xff\xff\xff"])
def test_a_produce_request_without_readable_acks_is_refused(begin: bytes) -> None:
    content = b"\x00\x00\x00\x07\x00\x00\x00\x01" + begin
    received = buffer_of(len(content).to_bytes(4, "big") + content)
    with pytest.raises(FrameRefused) as refused:
        parse_acks(received, head_of(received))
    assert refused.value.reason is RefusalReason.HEADER


def test_an_endless_transactional_id_is_refused() -> None:
    endless = b"\x00\x00\x00\x09\x00\x00\x00\x01" + b"\x00\x00" + b"\x00" + b"\xff\xff\xff\x0f"
    received = buffer_of(LARGEST.to_bytes(4, "big") + endless + bytes(MAX_BYTES_BEFORE_ACKS))
    with pytest.raises(FrameRefused) as refused:
        parse_acks(received, head_of(received))
    assert refused.value.reason is RefusalReason.HEADER


def test_a_response_head_has_length_and_correlation_id() -> None:
    data = (10).to_bytes(4, "big") + (-5).to_bytes(4, "big", signed=True)
    assert parse_response_head(buffer_of(data[:7])) is None
    assert parse_response_head(buffer_of(data)) == (10, -5)
