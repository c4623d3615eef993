"""Decodes frames to kio's entities and encodes entities to frames."""

import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer
from kio.serial.errors import SerialError
from kio.static.constants import EntityType
from kio.static.protocol import Entity, RequestPayload, ResponsePayload

from streaming.gateway.wire.api_keys import api_name
from streaming.gateway.wire.describe_transactions import DescribeTransactionsResponse
from streaming.gateway.wire.frames import LENGTH_SIZE, FrameRefused, Refusal
from streaming.gateway.wire.stepwise_writer import write_in_steps
from streaming.gateway.wire.tolerant_reader import Steps, TooManyEntries, read_entity, read_in_steps

__all__ = [
    "KNOWN_VERSIONS",
    "LARGE_REQUEST_BYTES",
    "MALFORMED",
    "decode_request",
    "decode_request_in_steps",
    "decode_response",
    "decode_response_in_steps",
    "encode_request",
    "encode_request_in_steps",
    "encode_response",
    "encode_response_in_steps",
]


def _known_versions() -> dict[int, tuple[int, int]]:
    return {
        key: (min(versions), max(versions))
        for key, name in api_key_map.items()
        if (versions := [v for v, kinds in schema_name_map[name].items() if EntityType.request in kinds])
    }


KNOWN_VERSIONS: Mapping[int, tuple[int, int]] = MappingProxyType(_known_versions())
"""The lowest and the highest version of each API that kio can decode and encode, by API key."""

LARGE_REQUEST_BYTES = 8 * 1024
"""Larger requests are scanned, decoded and encoded in steps."""

MALFORMED = (SerialError, KioIndexError, LookupError, ValueError, OverflowError)
"""What kio raises for bytes that do not encode the entity."""

_REPLACEMENTS: Mapping[tuple[int, int], type[Any]] = MappingProxyType(
    {(DescribeTransactionsResponse.__api_key__, 0): DescribeTransactionsResponse}
)
"""Entities for responses that kio's own cannot decode, by API key and version."""


def decode_request(frame: bytes, api_key: int, version: int) -> tuple[str, RequestPayload]:
    """Decode a request frame, which includes its length. Returns the client id (empty for null) and the payload.

    Raises :class:`FrameRefused` when the bytes are not such a request.
    """
    try:
        payload_type = load_request_schema(api_key, version)
        header, size = read_entity(payload_type.__header_schema__, frame, LENGTH_SIZE)
        payload, _ = read_entity(payload_type, frame, LENGTH_SIZE + size)
    except MALFORMED as failure:
        raise FrameRefused(Refusal.UNDECODABLE, f"{api_name(api_key)} v{version}: {failure!r}") from failure
    return header.client_id or "", payload


def decode_request_in_steps(
    frame: bytes, api_key: int, version: int, max_entries: int
) -> Steps[tuple[str, RequestPayload]]:
    """Decode a large request frame in steps; see :func:`decode_request`.

    max_entries: :class:`FrameRefused` is raised for a request whose arrays have more entries together.
    """
    try:
        payload_type = load_request_schema(api_key, version)
        header, size = yield from read_in_steps(payload_type.__header_schema__, frame, LENGTH_SIZE, max_entries)
        payload, _ = yield from read_in_steps(payload_type, frame, LENGTH_SIZE + size, max_entries)
    except TooManyEntries as failure:
        raise FrameRefused(Refusal.TOO_MANY_ENTRIES, f"{api_name(api_key)} v{version}: {failure}") from failure
    except MALFORMED as failure:
        raise FrameRefused(Refusal.UNDECODABLE, f"{api_name(api_key)} v{version}: {failure!r}") from failure
    return header.client_id or "", payload


def encode_response(payload: Entity, correlation_id: int) -> bytes:
    """Encode a response as a frame, its length included."""
    response: Any = payload
    return _frame(response.__header_schema__(correlation_id=correlation_id), response)


def encode_response_in_steps(payload: Entity, correlation_id: int) -> Steps[bytes]:
    """Encode a large response in steps; see :func:`encode_response`."""
    response: Any = payload
    return (yield from _frame_in_steps(response.__header_schema__(correlation_id=correlation_id), response))


def encode_request(payload: Entity, correlation_id: int, client_id: str) -> bytes:
    """Encode a request as a frame, its length included."""
    return _frame(_request_header(payload, correlation_id, client_id), payload)


def encode_request_in_steps(payload: Entity, correlation_id: int, client_id: str) -> Steps[bytes]:
    """Encode a large request in steps; see :func:`encode_request`."""
    return (yield from _frame_in_steps(_request_header(payload, correlation_id, client_id), payload))


def decode_response(frame: bytes, api_key: int, version: int) -> ResponsePayload:
    """Decode the payload of a response frame, which includes its length. Raises one of :data:`MALFORMED`."""
    payload_type: Any = _REPLACEMENTS.get((api_key, version)) or load_response_schema(api_key, version)
    _, size = read_entity(payload_type.__header_schema__, frame, LENGTH_SIZE)
    return read_entity(payload_type, frame, LENGTH_SIZE + size)[0]  # type: ignore[no-any-return]


def decode_response_in_steps(frame: bytes, api_key: int, version: int) -> Steps[ResponsePayload]:
    """Decode a large response frame in steps; see :func:`decode_response`."""
    payload_type: Any = _REPLACEMENTS.get((api_key, version)) or load_response_schema(api_key, version)
    _, size = read_entity(payload_type.__header_schema__, frame, LENGTH_SIZE)
    payload, _ = yield from read_in_steps(payload_type, frame, LENGTH_SIZE + size, max_entries=len(frame))
    return payload  # type: ignore[no-any-return]


def _request_header(payload: Any, correlation_id: int, client_id: str) -> Any:
    return payload.__header_schema__(
        request_api_key=payload.__api_key__,
        request_api_version=payload.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )


def _frame(header: Any, payload: Any) -> bytes:
    buffer = io.BytesIO(bytes(LENGTH_SIZE))
    buffer.seek(LENGTH_SIZE)
    entity_writer(type(header))(buffer, header)
    entity_writer(type(payload))(buffer, payload)
    return _with_length(buffer)


def _frame_in_steps(header: Any, payload: Any) -> Steps[bytes]:
    buffer = io.BytesIO(bytes(LENGTH_SIZE))
    buffer.seek(LENGTH_SIZE)
    yield from write_in_steps(buffer, header)
    yield from write_in_steps(buffer, payload)
    return _with_length(buffer)


def _with_length(buffer: io.BytesIO) -> bytes:
    """Fill in the length of a frame that was just written."""
    length = buffer.tell() - LENGTH_SIZE
    buffer.seek(0)
    buffer.write(length.to_bytes(LENGTH_SIZE, "big"))
    return buffer.getvalue()
