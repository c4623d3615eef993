"""What can be read of an envelope that is broken or cut: the address for the answer."""

import json
from contextlib import suppress
from typing import TypeVar

import msgspec

from coordinator_logic.events import ReplyAddress
from coordinator_logic.messages import LONGEST_CORRELATION_ID, Int16, Message

LONGEST_API_NAME = 64
"""The response to an unknown API repeats this many characters of its name; its metrics have the label `unknown`."""

UNREADABLE = (ValueError, RecursionError)
"""What msgspec raises on hostile bytes: ValueError for bad JSON or UTF-8, RecursionError for deep nesting."""

T = TypeVar("T")

_scanner = json.JSONDecoder()
_WHITE_SPACE = " \t\r\n"


class _ReplyFields(Message, frozen=True):
    """The fields of an envelope that an answer needs; each is decoded separately."""

    correlation_id: msgspec.Raw
    reply_partition: msgspec.Raw
    api: msgspec.Raw = msgspec.Raw(b"null")
    version: msgspec.Raw = msgspec.Raw(b"null")


def address_in_broken_envelope(value: bytes, timestamp: int, response_partitions: int) -> ReplyAddress | None:
    """The address for the answer to the value of a record; None if it cannot be read.

    ``timestamp`` is the record's append time, ms since the epoch. A reply partition must be one of
    ``response_partitions``.
    """
    try:
        fields = msgspec.json.decode(value, type=_ReplyFields)
        correlation_id = msgspec.json.decode(fields.correlation_id, type=str)
        reply_partition = msgspec.json.decode(fields.reply_partition, type=int)
    except UNREADABLE:
        return None
    if not 1 <= len(correlation_id) <= LONGEST_CORRELATION_ID or not 0 <= reply_partition < response_partitions:
        return None
    api = _or_default(fields.api, str, "")[:LONGEST_API_NAME]
    version = _or_default(fields.version, Int16, -1)
    return ReplyAddress(api, version, correlation_id, reply_partition, timestamp)


def fields_before_cut(cut: bytes) -> bytes:
    """The JSON object of the strings and numbers that stand before the cut in an object."""
    text = cut.decode(errors="ignore")
    fields: dict[str, str | int] = {}
    with suppress(IndexError, *UNREADABLE):
        position = _after(_WHITE_SPACE + "{", text, 0)
        while text[position] == '"':
            name, end = _scanner.raw_decode(text, position)
            value, end = _scanner.raw_decode(text, _after(_WHITE_SPACE + ":", text, end))
            if isinstance(value, str | int):
                fields[name] = value
            position = _after(_WHITE_SPACE + ",", text, end)
    return json.dumps(fields).encode()


def _after(characters: str, text: str, position: int) -> int:
    """The first position from ``position`` on that has none of the characters. Raises IndexError at the end."""
    while text[position] in characters:
        position += 1
    return position


def _or_default(raw: msgspec.Raw, kind: type[T], default: T) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except UNREADABLE:
        return default
