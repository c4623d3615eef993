"""Parses the parts of Kafka's frames that a proxy needs: length, API key, version, correlation id, and acks.

A frame is a four-byte length and as many bytes of content. A request's content begins with the API key, the version,
a correlation id and a client id; a response's content begins with the correlation id. This module does no I/O:
:meth:`ByteBuffer.feed` accepts bytes in pieces of any size.
"""

import struct
from enum import StrEnum
from typing import NamedTuple

from kio.index import load_request_schema
from kio.serial import readers
from kio.serial.errors import BufferUnderflow, SerialError

from streaming.gateway.wire.api_keys import PRODUCE
from streaming.gateway.wire.reader import FrameReader
from streaming.gateway.wire.steps import run_steps

LENGTH_SIZE = 4

REQUEST_HEAD = struct.Struct(">ihhi")
RESPONSE_HEAD = struct.Struct(">ii")
"""The length, and the first fields of every request and response."""

MIN_REQUEST_BYTES = 10
"""API key, version, correlation id, and the length of a null client id."""

TRANSACTIONAL_ID_SINCE = 3
FLEXIBLE_PRODUCE_SINCE = 9
"""Versions of Produce: the first in which a transactional id precedes acks; the first with compact types."""

MIN_KNOWN_PRODUCE_VERSION = 3
"""The lowest version in kio; older versions have the same header."""

TYPICAL_BYTES_BEFORE_ACKS = 512
MAX_BYTES_BEFORE_ACKS = 70_000
"""The client id and the transactional id have at most 32,767 bytes each in a request that a broker accepts."""


class RefusalReason(StrEnum):
    """Why the gateway closed a client's connection: the ``reason`` label of the metric."""

    FRAME_LENGTH = "frame-length"
    FRAME_TOO_LARGE = "frame-too-large"
    REQUEST_TOO_LARGE = "request-too-large"
    HEADER = "header"
    UNKNOWN_API = "unknown-api"
    UNSUPPORTED_VERSION = "unsupported-version"
    UNDECODABLE = "undecodable"
    TOO_MANY_ENTRIES = "too-many-entries"
    NOT_AUTHENTICATED = "not-authenticated"
    SASL_EXCHANGE = "sasl-exchange"
    INTERNAL_TOPIC = "internal-topic"


class FrameRefused(Exception):
    """An invalid or unacceptable frame; its connection must be closed, since the next frame's start is unknown."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class RequestHead(NamedTuple):
    """The first fields of every request. ``length`` is that of the content, in bytes."""

    length: int
    api_key: int
    version: int
    correlation_id: int


class ResponseHead(NamedTuple):
    """The first fields of every response. ``length`` is that of the content, in bytes."""

    length: int
    correlation_id: int


class ByteBuffer:
    """Received bytes that are not processed yet."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes)

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        self._bytes += data

    def peek(self, size: int) -> bytes:
        """Return the first ``size`` bytes, or all if there are fewer."""
        return bytes(self._bytes[:size])

    def read(self, size: int) -> bytes:
        """Remove and return the first ``size`` bytes, or all if there are fewer."""
        read = bytes(self._bytes[:size])
        del self._bytes[:size]
        return read


def parse_request_head(received: ByteBuffer, max_length: int) -> RequestHead | None:
    """Parse the head of the request at the start of the buffer; None while too few bytes have arrived.

    The bytes stay in the buffer. Raises :class:`FrameRefused` for a length that is too small for a request, or more
    than ``max_length`` bytes, as soon as the length has arrived.
    """
    begin = received.peek(REQUEST_HEAD.size)
    if len(begin) < LENGTH_SIZE:
        return None
    length = int.from_bytes(begin[:LENGTH_SIZE], "big", signed=True)
    if length < MIN_REQUEST_BYTES:
        raise FrameRefused(RefusalReason.FRAME_LENGTH, f"a request of {length} bytes")
    if length > max_length:
        raise FrameRefused(RefusalReason.FRAME_TOO_LARGE, f"{length} bytes exceed the limit of {max_length}")
    if len(begin) < REQUEST_HEAD.size:
        return None
    return RequestHead(*REQUEST_HEAD.unpack(begin))


def parse_response_head(received: ByteBuffer) -> ResponseHead | None:
    """Parse the head of the response at the start of the buffer; None while too few bytes have arrived."""
    begin = received.peek(RESPONSE_HEAD.size)
    if len(begin) < RESPONSE_HEAD.size:
        return None
    return ResponseHead(*RESPONSE_HEAD.unpack(begin))


def parse_acks(received: ByteBuffer, head: RequestHead) -> int | None:
    """Parse ``acks`` of the Produce request at the start of the buffer; None while too few bytes have arrived.

    A broker sends no response to a request with acks 0. Raises :class:`FrameRefused` when acks cannot be parsed.
    """
    whole = LENGTH_SIZE + head.length
    for enough in (TYPICAL_BYTES_BEFORE_ACKS, MAX_BYTES_BEFORE_ACKS):
        begin = received.peek(min(whole, enough))
        try:
            return _read_acks(begin, head.version)
        except BufferUnderflow:
            pass
        except (SerialError, ValueError) as failure:
            raise FrameRefused(RefusalReason.HEADER, f"acks cannot be parsed: {failure!r}") from failure
    if len(begin) == min(whole, MAX_BYTES_BEFORE_ACKS):
        raise FrameRefused(RefusalReason.HEADER, "the request ends before acks")
    return None


def _read_acks(begin: bytes, version: int) -> int:
    header = FrameReader(begin, REQUEST_HEAD.size, max_entries=len(begin))
    run_steps(header.client_id(load_request_schema(PRODUCE, max(version, MIN_KNOWN_PRODUCE_VERSION))))
    at = header.at
    if version >= FLEXIBLE_PRODUCE_SINCE:
        at += readers.read_compact_string_nullable(begin, at)[1]
    elif version >= TRANSACTIONAL_ID_SINCE:
        at += readers.read_nullable_legacy_string(begin, at)[1]
    return readers.read_int16(begin, at)[0]
