"""Frames to kio's entities and back."""

import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.constants import EntityType
from kio.static.protocol import Entity, RequestPayload, ResponsePayload

from streaming.gateway.describe_transactions import DescribeTransactionsResponse
from streaming.gateway.frames import LENGTH_SIZE, FrameRefused, Refusal

__all__ = [
    "KNOWN_VERSIONS",
    "MALFORMED",
    "api_name",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]


def _known_versions() -> dict[int, tuple[int, int]]:
    return {
        key: (min(versions), max(versions))
        for key, name in api_key_map.items()
        if (versions := [v for v, kinds in schema_name_map[name].items() if EntityType.request in kinds])
    }


KNOWN_VERSIONS: Mapping[int, tuple[int, int]] = MappingProxyType(_known_versions())
"""The lowest and the highest version of each API that kio can read and write."""

MALFORMED = (SerialError, KioIndexError, LookupError, ValueError, OverflowError)
"""What kio raises for bytes that are no such entity; a tagged field that it does not know is a ``KeyError``."""

_REPAIRED: Mapping[tuple[int, int], type[Any]] = MappingProxyType(
    {(DescribeTransactionsResponse.__api_key__, 0): DescribeTransactionsResponse}
)
"""Responses that kio cannot read as brokers write them."""

_NAMES = {key: name.title().replace("_", "") for key, name in api_key_map.items()}


def api_name(api_key: int) -> str:
    """Kafka's name of the API, ``OffsetFetch``; the number as text where kio has none."""
    return _NAMES.get(api_key, str(api_key))


def decode_request(frame: bytes, api_key: int, version: int) -> tuple[str, RequestPayload]:
    """The client id (empty where it is null) and the payload of a request, its length bytes included.

    Raises :class:`FrameRefused` when the bytes are no such request.
    """
    try:
        payload_type = load_request_schema(api_key, version)
        header, size = entity_reader(payload_type.__header_schema__)(frame, LENGTH_SIZE)
        payload, _ = entity_reader(payload_type)(frame, LENGTH_SIZE + size)
    except MALFORMED as failure:
        detail = f"{api_name(api_key)} v{version}: {failure!r}"
        raise FrameRefused(Refusal.UNDECODABLE, detail) from failure
    return header.client_id or "", payload


def encode_response(payload: Entity, correlation_id: int) -> bytes:
    """A response as it goes over the wire, its length first."""
    response: Any = payload
    return _framed(response.__header_schema__(correlation_id=correlation_id), response)


def encode_request(payload: Entity, correlation_id: int, client_id: str) -> bytes:
    """A request as it goes over the wire, its length first."""
    request: Any = payload
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return _framed(header, request)


def decode_response(frame: bytes, api_key: int, version: int) -> ResponsePayload:
    """The payload of a response, its length bytes included. Raises one of :data:`MALFORMED`."""
    payload_type: Any = _REPAIRED.get((api_key, version)) or load_response_schema(api_key, version)
    _, size = entity_reader(payload_type.__header_schema__)(frame, LENGTH_SIZE)
    return entity_reader(payload_type)(frame, LENGTH_SIZE + size)[0]  # type: ignore[no-any-return]


def _framed(header: Any, payload: Any) -> bytes:
    buffer = io.BytesIO(bytes(LENGTH_SIZE))
    buffer.seek(LENGTH_SIZE)
    entity_writer(type(header))(buffer, header)
    entity_writer(type(payload))(buffer, payload)
    length = buffer.tell() - LENGTH_SIZE
    buffer.seek(0)
    buffer.write(length.to_bytes(LENGTH_SIZE, "big"))
    return buffer.getvalue()
