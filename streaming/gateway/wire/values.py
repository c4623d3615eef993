"""How kio reads and writes the values of its entities, and how those of messages differ from them."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import timedelta
from io import BytesIO
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial import readers, writers

Reader = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value at an offset; returns it with its size in bytes."""

Writer = Callable[[BytesIO, Any], None]

MILLISECOND = timedelta(milliseconds=1)

_STRINGS_AND_BYTES: Mapping[tuple[str, bool, bool], tuple[Reader, Writer]] = {
    ("string", False, False): (readers.read_legacy_string, writers.write_legacy_string),
    ("string", False, True): (readers.read_nullable_legacy_string, writers.write_nullable_legacy_string),
    ("string", True, False): (readers.read_compact_string, writers.write_compact_string),
    ("string", True, True): (readers.read_compact_string_nullable, writers.write_nullable_compact_string),
    ("bytes", False, False): (readers.read_legacy_bytes, writers.write_legacy_bytes),
    ("bytes", False, True): (readers.read_nullable_legacy_bytes, writers.write_nullable_legacy_bytes),
    ("bytes", True, False): (readers.read_compact_string_as_bytes, writers.write_compact_string),
    ("bytes", True, True): (readers.read_compact_string_as_bytes_nullable, writers.write_nullable_compact_string),
}
"""By type, whether the entity is flexible (compact lengths), and whether the value can be null."""


def value_codec(kafka_type: str, is_flexible: bool, is_nullable: bool) -> tuple[Reader, Writer]:
    """Return how kio reads and writes a value of one of its entities.

    is_flexible: whether the entity has compact lengths.
    """
    # Records are bytes to everyone but their readers.
    variable = _STRINGS_AND_BYTES.get(("bytes" if kafka_type == "records" else kafka_type, is_flexible, is_nullable))
    if variable is not None:
        return variable
    if kafka_type == "datetime_i64":
        # The start of a transaction is -1 while none is open, although kio's type has no null.
        return readers.read_nullable_datetime_i64, writers.write_nullable_datetime_i64
    name = "boolean" if kafka_type == "bool" else kafka_type
    read = _read_timedelta_i64 if kafka_type == "timedelta_i64" else getattr(readers, f"read_{name}")
    return read, getattr(writers, f"write_{name}")


def _read_milliseconds_i64(frame: bytes, offset: int) -> tuple[int, int]:
    """Read milliseconds; what a ``timedelta`` cannot hold (2.7 million years) becomes the longest that it can."""
    milliseconds, size = readers.read_int64(frame, offset)
    return min(max(milliseconds, timedelta.min // MILLISECOND), timedelta.max // MILLISECOND), size


def _read_timedelta_i64(frame: bytes, offset: int) -> tuple[timedelta, int]:
    milliseconds, size = _read_milliseconds_i64(frame, offset)
    return timedelta(milliseconds=milliseconds), size


def text_of_topic_id(topic_id: UUID | None) -> str:
    """Kafka's text form of a topic's id, URL-safe base64; empty for the zero id, which kio reads as None."""
    return "" if topic_id is None else urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def topic_id_of_text(text: str) -> UUID | None:
    """The id in a text of :func:`text_of_topic_id`."""
    return UUID(bytes=urlsafe_b64decode(text + "==")) if text else None


def _read_topic_id(frame: bytes, offset: int) -> tuple[str, int]:
    topic_id, size = readers.read_uuid(frame, offset)
    return text_of_topic_id(topic_id), size


MESSAGE_CODECS: Mapping[str, tuple[Reader, Writer]] = {
    "error_code": (readers.read_int16, lambda buffer, code: writers.write_error_code(buffer, ErrorCode(code))),
    "timedelta_i32": (readers.read_int32, writers.write_int32),
    "timedelta_i64": (_read_milliseconds_i64, writers.write_int64),
    "uuid": (_read_topic_id, lambda buffer, text: writers.write_uuid(buffer, topic_id_of_text(text))),
}
"""By type: how values of messages are read and written that are others in kio's entities."""
