"""The error of a response, for the metrics."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from streaming.gateway.wire.lazy_list import LazyList

__all__ = ["error_name"]


MAX_ERROR_CODES = 100
"""How many error codes of a response count: reading more would hold the event loop."""


def error_name(response: Entity) -> str:
    """Return Kafka's name of the first error in a response, ``NONE`` without an error.

    Newer APIs have one error code at the top level, older ones one for each partition, of which the first
    :data:`MAX_ERROR_CODES` count.
    """
    codes = islice(_error_codes(response), MAX_ERROR_CODES)
    return next((code for code in codes if code is not ErrorCode.none), ErrorCode.none).name.upper()


def _error_codes(entity: Any) -> Iterator[ErrorCode]:
    for field in fields(entity):
        value = getattr(entity, field.name)
        if isinstance(value, ErrorCode):
            yield value
        elif isinstance(value, LazyList) or (isinstance(value, tuple) and value and is_dataclass(value[0])):
            for item in value:
                yield from _error_codes(item)
