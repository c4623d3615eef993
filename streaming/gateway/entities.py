"""What the metrics tell of an answer."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

__all__ = ["error_of"]


def error_of(answer: Entity) -> str:
    """Kafka's name of the first error in an answer, ``NONE`` when there is none.

    Newer APIs have one error code at the top, older ones one for each topic's partition.
    """
    return next(_errors(answer), ErrorCode.none).name.upper()


def _errors(entity: Any) -> Iterator[ErrorCode]:
    for field in fields(entity):
        value = getattr(entity, field.name)
        if isinstance(value, ErrorCode):
            if value is not ErrorCode.none:
                yield value
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            for item in value:
                yield from _errors(item)
