"""Decodes frames to objects, and encodes objects to frames: to and from kio's entities, or messages.

See :mod:`.layout` for the two kinds.
"""

import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import writers
from kio.serial.errors import SerialError
from kio.static.constants import EntityType
from kio.static.protocol import Entity, ResponsePayload

from coordinator_logic.messages import Message
from streaming.gateway.wire.api_keys import api_name
from streaming.gateway.wire.frames import LENGTH_SIZE, REQUEST_HEAD, RESPONSE_HEAD, FrameRefused, RefusalReason
from streaming.gateway.wire.layout import layout_of
from streaming.gateway.wire.reader import FrameReader, TooManyEntries
from streaming.gateway.wire.steps import Steps, run_steps
from streaming.gateway.wire.writer import FrameWriter


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
"""What decoding raises for bytes that do not encode the payload."""

NO_TAGGED_FIELDS = b"\0"


def decode_request(
    frame: bytes, api_key: int, version: int, message_type: type[Message] | None = None
) -> tuple[str, Any]:
    """Decode a small request frame at once; see :func:`decode_request_in_steps`."""
    return run_steps(decode_request_in_steps(frame, api_key, version, len(frame), message_type))


def decode_request_in_steps(
    frame: bytes, api_key: int, version: int, max_entries: int, message_type: type[Message] | None = None
) -> Steps[tuple[str, Any]]:
    """Decode a request frame, which includes its length. Returns the client id (empty for null) and the payload.

    Raises :class:`FrameRefused` when the bytes are not such a request.

    max_entries: :class:`FrameRefused` is raised for a request whose arrays have more entries together.
    message_type: the type of the payload; without it, that of kio.
    """
    try:
        request_type: Any = load_request_schema(api_key, version)
        reader = FrameReader(frame, REQUEST_HEAD.size, max_entries)
        client_id = yield from reader.client_id(request_type)
        payload = yield from reader.entity(layout_of(request_type, message_type or request_type))
    except TooManyEntries as failure:
        raise FrameRefused(RefusalReason.TOO_MANY_ENTRIES, f"{api_name(api_key)} v{version}: {failure}") from failure
    except MALFORMED as failure:
        raise FrameRefused(RefusalReason.UNDECODABLE, f"{api_name(api_key)} v{version}: {failure!r}") from failure
    return client_id, payload


def decode_response(frame: bytes, api_key: int, version: int) -> ResponsePayload:
    """Decode a small response frame at once; see :func:`decode_response_in_steps`."""
    return run_steps(decode_response_in_steps(frame, api_key, version))


def decode_response_in_steps(frame: bytes, api_key: int, version: int) -> Steps[ResponsePayload]:
    """Decode the payload of a response frame, which includes its length. Raises one of :data:`MALFORMED`."""
    response_type: Any = load_response_schema(api_key, version)
    reader = FrameReader(frame, RESPONSE_HEAD.size, max_entries=len(frame))
    yield from reader.end_of_response_header(response_type)
    return (yield from reader.entity(layout_of(response_type, response_type)))  # type: ignore[no-any-return]


def encode_request(payload: Entity, correlation_id: int, client_id: str) -> bytes:
    """Encode a small request at once; see :func:`encode_request_in_steps`."""
    return run_steps(encode_request_in_steps(payload, correlation_id, client_id))


def encode_request_in_steps(payload: Entity, correlation_id: int, client_id: str) -> Steps[bytes]:
    """Encode a request as a frame, its length included."""
    request_type: Any = type(payload)
    buffer = io.BytesIO()
    buffer.write(REQUEST_HEAD.pack(0, request_type.__api_key__, request_type.__version__, correlation_id))
    writers.write_legacy_string(buffer, client_id)
    return (yield from _framed(buffer, request_type, payload))


def encode_response(payload: Entity, correlation_id: int) -> bytes:
    """Encode a small response at once; see :func:`encode_response_in_steps`."""
    return run_steps(encode_response_in_steps(payload, correlation_id))


def encode_response_in_steps(payload: Entity | Message, correlation_id: int, response_type: Any = None) -> Steps[bytes]:
    """Encode a response as a frame, its length included.

    response_type: kio's type of the version in which to encode a message.
    """
    buffer = io.BytesIO()
    buffer.write(RESPONSE_HEAD.pack(0, correlation_id))
    return (yield from _framed(buffer, response_type or type(payload), payload))


def _framed(buffer: io.BytesIO, payload_type: Any, payload: Entity | Message) -> Steps[bytes]:
    """Complete a frame of which the buffer has the header without its tagged fields, and no length yet."""
    if payload_type.__header_schema__.__flexible__:
        buffer.write(NO_TAGGED_FIELDS)
    yield from FrameWriter(buffer).entity(layout_of(payload_type, type(payload)), payload)
    length = buffer.tell() - LENGTH_SIZE
    buffer.seek(0)
    buffer.write(length.to_bytes(LENGTH_SIZE, "big"))
    return buffer.getvalue()
