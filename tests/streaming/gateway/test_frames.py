import pytest

from streaming.gateway.codec import KNOWN_VERSIONS, encode_request
from streaming.gateway.frames import (
    MOST_BEFORE_ACKS,
    PRODUCE,
    SMALLEST_REQUEST,
    ByteBuffer,
    FrameRefused,
    Refusal,
    RequestHead,
    peek_acks,
    peek_request_head,
    peek_response_head,
)
from tests.streaming.gateway.requests import heartbeat, produce

LARGEST = 1_000_000


def buffer_of(data: bytes) -> ByteBuffer:
    unread = ByteBuffer()
    unread.feed(data)
    return unread


def head_of(unread: ByteBuffer) -> RequestHead:
    head = peek_request_head(unread, LARGEST)
    assert head is not None
    return head


def test_bytes_are_taken_in_the_order_in_which_they_came() -> None:
    unread = buffer_of(b"abc")
    unread.feed(b"defg")
    assert unread.peek(4) == b"abcd"
    assert unread.take(5) == b"abcde"
    assert unread.take(5) == b"fg"
    assert len(unread) == 0


def test_a_head_is_read_as_soon_as_it_is_there_and_not_before() -> None:
    frame = encode_request(heartbeat(), 7, "client")
    unread = ByteBuffer()
    for size in range(12):
        assert peek_request_head(unread, LARGEST) is None
        unread.feed(frame[size : size + 1])
    assert peek_request_head(unread, LARGEST) == RequestHead(len(frame) - 4, 12, 4, 7)


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, SMALLEST_REQUEST - 1])
def test_a_length_that_no_request_has_is_refused(length: int) -> None:
    with pytest.raises(FrameRefused) as refused:
        peek_request_head(buffer_of(length.to_bytes(4, "big", signed=True)), LARGEST)
    assert refused.value.reason is Refusal.FRAME_LENGTH


def test_a_length_beyond_the_limit_is_refused_before_anything_else_has_come() -> None:
    with pytest.raises(FrameRefused) as refused:
        peek_request_head(buffer_of((LARGEST + 1).to_bytes(4, "big")), LARGEST)
    assert refused.value.reason is Refusal.FRAME_TOO_LARGE
    assert peek_request_head(buffer_of(LARGEST.to_bytes(4, "big")), LARGEST) is None


@pytest.mark.parametrize("client_id", ["", "client", "ü" * 2000])
@pytest.mark.parametrize("transactional_id", [None, "", "t", "x" * 30_000])
@pytest.mark.parametrize("version", range(KNOWN_VERSIONS[PRODUCE][0], KNOWN_VERSIONS[PRODUCE][1] + 1))
def test_acks_are_read_in_every_version_of_produce(version: int, transactional_id: str | None, client_id: str) -> None:
    for acks in (0, 1, -1):
        frame = encode_request(produce(version, acks=acks, transactional_id=transactional_id), 1, client_id)
        unread = buffer_of(frame)
        assert peek_acks(unread, head_of(unread)) == acks


@pytest.mark.parametrize("version", [7, 9])
def test_acks_are_read_as_soon_as_they_are_there_and_not_before(version: int) -> None:
    frame = encode_request(produce(version, acks=0, transactional_id="transaction"), 1, "client")
    unread = buffer_of(frame[:12])
    head = head_of(unread)
    read = []
    for at in range(12, len(frame)):
        read.append(peek_acks(unread, head))
        unread.feed(frame[at : at + 1])
    known_from = read.index(0)
    assert set(read[:known_from]) == {None}
    assert set(read[known_from:]) == {0}


def test_acks_before_version_3_come_first() -> None:
    frame = encode_request(produce(7, acks=0, transactional_id=None), 1, "client")
    header = frame[:20]
    old = bytearray(header + frame[22:])
    old[6:8] = (2).to_bytes(2, "big")
    old[:4] = (len(old) - 4).to_bytes(4, "big")
    unread = buffer_of(bytes(old))
    assert peek_acks(unread, head_of(unread)) == 0


@pytest.mark.parametrize("begin", [b"\xff\xf0", b"\x7f\xff" + bytes(10), b"\x00\x02\xff\xff\xff\xff"])
def test_a_produce_request_whose_acks_cannot_be_found_is_refused(begin: bytes) -> None:
    content = b"\x00\x00\x00\x07\x00\x00\x00\x01" + begin
    unread = buffer_of(len(content).to_bytes(4, "big") + content)
    with pytest.raises(FrameRefused) as refused:
        peek_acks(unread, head_of(unread))
    assert refused.value.reason is Refusal.HEADER


def test_a_transactional_id_without_end_is_refused() -> None:
    endless = b"\x00\x00\x00\x09\x00\x00\x00\x01" + b"\x00\x00" + b"\x00" + b"\xff\xff\xff\x0f"
    unread = buffer_of(LARGEST.to_bytes(4, "big") + endless + bytes(MOST_BEFORE_ACKS))
    with pytest.raises(FrameRefused) as refused:
        peek_acks(unread, head_of(unread))
    assert refused.value.reason is Refusal.HEADER


def test_a_response_is_told_by_its_correlation_id() -> None:
    data = (10).to_bytes(4, "big") + (-5).to_bytes(4, "big", signed=True)
    assert peek_response_head(buffer_of(data[:7])) is None
    assert peek_response_head(buffer_of(data)) == (10, -5)
