"""The error of a response, for the metrics."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from coordinator_logic.messages import Message
from streaming.gateway.wire.steps import LazyList

MAX_ERROR_CODES = 100
"""How many error codes of a response count: reading more would hold the event loop."""


def error_name(response: Entity | Message) -> str:
    """Return Kafka's name of the first error in a response, ``NONE`` without an error.

    Later APIs have one error code at the top level, older ones one for each partition, of which the first
    :data:`MAX_ERROR_CODES` count.
    """
    codes = islice(_error_codes(response), MAX_ERROR_CODES)
    return ErrorCode(next((code for code in codes if code != ErrorCode.none), ErrorCode.none)).name.upper()


def _error_codes(source: Any) -> Iterator[int]:
    is_message = isinstance(source, Message)
    for name in source.__struct_fields__ if is_message else (field.name for field in fields(source)):
        value = getattr(source, name)
        if isinstance(value, ErrorCode) or (is_message and name == "error_code"):
            yield value
        elif isinstance(value, LazyList) or (isinstance(value, list | tuple) and value and _has_fields(value[0])):
            for item in value:
                yield from _error_codes(item)


def _has_fields(item: Any) -> bool:
    return isinstance(item, Message) or is_dataclass(item)
