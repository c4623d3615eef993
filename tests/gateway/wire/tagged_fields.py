"""Adds tagged fields that no schema knows to the frames of requests and responses."""

import io
from dataclasses import fields, is_dataclass, replace
from typing import Any

from kio.serial import entity_reader, entity_writer

from streaming.gateway.wire.frames import LENGTH_SIZE

__all__ = ["with_unknown_tags"]

UNKNOWN = b"\x63\x03abc" + b"\x64\x00"
"""Tag 99 with three bytes, and tag 100 without any."""


def with_unknown_tags(frame: bytes, payload_type: Any) -> bytes:
    """The frame with two unknown tagged fields in the header and in each entity whose version can have them."""
    header, size = entity_reader(payload_type.__header_schema__)(frame, LENGTH_SIZE)
    payload, _ = entity_reader(payload_type)(frame, LENGTH_SIZE + size)
    content = _tagged(header) + _tagged(payload)
    return len(content).to_bytes(LENGTH_SIZE, "big") + content


def _tagged(entity: Any) -> bytes:
    """Encode an entity, with the unknown fields behind its own tagged ones; entities within those stay unchanged."""
    encoded = _encoded(entity)
    if not entity.__flexible__:
        return encoded
    untagged = replace(entity, **{field.name: field.default for field in fields(entity) if "tag" in field.metadata})
    tags_at = len(_encoded(untagged)) - 1
    result, at = b"", 0
    for nested in (value for field in fields(untagged) for value in _entities(getattr(untagged, field.name))):
        plain = _encoded(nested)
        begin = encoded.index(plain, at)
        result += encoded[at:begin] + _tagged(nested)
        at = begin + len(plain)
    return result + encoded[at:tags_at] + bytes([encoded[tags_at] + 2]) + encoded[tags_at + 1 :] + UNKNOWN


def _entities(value: Any) -> list[Any]:
    items = value if isinstance(value, tuple) else (value,)
    return [item for item in items if is_dataclass(item)]


def _encoded(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()
