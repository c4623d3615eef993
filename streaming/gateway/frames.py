"""Kafka's frames as far as a proxy must look into them: where one ends, whose it is, who is to answer it.

A frame is its length in four bytes and as many bytes of content. A request's content begins with the API's key, its
version, a correlation id and a client id; a response's with the correlation id. All this without I/O: bytes come in
through :meth:`ByteBuffer.feed`, in whatever pieces the network made of them.
"""

import struct
from enum import StrEnum
from typing import NamedTuple

from kio.index import load_request_schema
from kio.serial import entity_reader, readers
from kio.serial.errors import BufferUnderflow, SerialError

__all__ = [
    "PRODUCE",
    "ByteBuffer",
    "FrameRefused",
    "Refusal",
    "RequestHead",
    "ResponseHead",
    "peek_acks",
    "peek_request_head",
    "peek_response_head",
]

LENGTH_SIZE = 4
PRODUCE = 0

_REQUEST_HEAD = struct.Struct(">ihhi")
_RESPONSE_HEAD = struct.Struct(">ii")
_CLIENT_ID_LENGTH = struct.Struct(">h")

SMALLEST_REQUEST = 10
"""Key, version, correlation id, and the length of a client id that is null."""

TRANSACTIONAL_ID_SINCE = 3
FLEXIBLE_PRODUCE_SINCE = 9
"""Versions of Produce: the first whose acks come after a transactional id; the first with compact types."""

OLDEST_KNOWN_PRODUCE = 3
"""Of kio; older versions have the same header."""

USUALLY_BEFORE_ACKS = 512
MOST_BEFORE_ACKS = 70_000
"""Bytes. A client id has at most 32,767, and so has a transactional id in what a broker takes."""


class Refusal(StrEnum):
    """Why a connection was closed by the gateway, as the metrics count it."""

    FRAME_LENGTH = "frame-length"
    FRAME_TOO_LARGE = "frame-too-large"
    REQUEST_TOO_LARGE = "request-too-large"
    HEADER = "header"
    UNKNOWN_API = "unknown-api"
    UNSUPPORTED_VERSION = "unsupported-version"
    UNDECODABLE = "undecodable"
    NOT_AUTHENTICATED = "not-authenticated"
    SASL_EXCHANGE = "sasl-exchange"


class FrameRefused(Exception):
    """A frame that cannot be taken; its connection must be closed, since nobody knows where the next one begins."""

    def __init__(self, reason: Refusal, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class RequestHead(NamedTuple):
    """What every request begins with. ``length`` is that of the content, in bytes."""

    length: int
    api_key: int
    version: int
    correlation_id: int


class ResponseHead(NamedTuple):
    """What every response begins with. ``length`` is that of the content, in bytes."""

    length: int
    correlation_id: int


class ByteBuffer:
    """Bytes that have arrived and were not taken yet."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes)

    def feed(self, data: bytes) -> None:
        """Add what has arrived."""
        self._bytes += data

    def peek(self, size: int) -> bytes:
        """The first ``size`` bytes, or all there are."""
        return bytes(self._bytes[:size])

    def take(self, size: int) -> bytes:
        """Remove the first ``size`` bytes, or all there are."""
        taken = bytes(self._bytes[:size])
        del self._bytes[:size]
        return taken


def peek_request_head(unread: ByteBuffer, largest: int) -> RequestHead | None:
    """The head of the frame that begins here; None until enough of it has arrived.

    Raises :class:`FrameRefused` for a length that no request can have, as soon as that is known.
    """
    begin = unread.peek(_REQUEST_HEAD.size)
    if len(begin) < LENGTH_SIZE:
        return None
    length = int.from_bytes(begin[:LENGTH_SIZE], "big", signed=True)
    if length < SMALLEST_REQUEST:
        raise FrameRefused(Refusal.FRAME_LENGTH, f"a request of {length} bytes")
    if length > largest:
        raise FrameRefused(Refusal.FRAME_TOO_LARGE, f"{length} bytes, at most {largest} are taken")
    if len(begin) < _REQUEST_HEAD.size:
        return None
    return RequestHead(*_REQUEST_HEAD.unpack(begin))


def peek_response_head(unread: ByteBuffer) -> ResponseHead | None:
    """The head of the response that begins here; None until enough of it has arrived."""
    begin = unread.peek(_RESPONSE_HEAD.size)
    if len(begin) < _RESPONSE_HEAD.size:
        return None
    return ResponseHead(*_RESPONSE_HEAD.unpack(begin))


def peek_acks(unread: ByteBuffer, head: RequestHead) -> int | None:
    """The ``acks`` of the Produce request that begins here; None until enough of it has arrived.

    It decides whether there will be an answer: to 0 there is none. Raises :class:`FrameRefused`.
    """
    whole = LENGTH_SIZE + head.length
    for enough in (USUALLY_BEFORE_ACKS, MOST_BEFORE_ACKS):
        begin = unread.peek(min(whole, enough))
        try:
            return _read_acks(begin, head.version)
        except BufferUnderflow:
            pass
        except SerialError as failure:
            raise FrameRefused(Refusal.HEADER, f"no acks can be read: {failure!r}") from failure
    if len(begin) == min(whole, MOST_BEFORE_ACKS):
        raise FrameRefused(Refusal.HEADER, "it ends before its acks")
    return None


def _read_acks(begin: bytes, version: int) -> int:
    read_header = entity_reader(load_request_schema(PRODUCE, max(version, OLDEST_KNOWN_PRODUCE)).__header_schema__)
    at = LENGTH_SIZE
    at += read_header(begin, at)[1]
    if version >= FLEXIBLE_PRODUCE_SINCE:
        at += readers.read_compact_string_nullable(begin, at)[1]
    elif version >= TRANSACTIONAL_ID_SINCE:
        at += readers.read_nullable_legacy_string(begin, at)[1]
    return readers.read_int16(begin, at)[0]
