"""Builds kio's entities with a value in every field."""

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from kio.schema.errors import ErrorCode

VALUES: dict[type, Any] = {str: "text", bytes: b"bytes", bool: True, int: 1, float: 1.0, UUID: UUID(int=5)}


def filled_entity(entity_type: type) -> Any:
    """An entity of this type with a fixed value in every field and one item in every array."""
    hints = get_type_hints(entity_type)
    return entity_type(**{field.name: _value(hints[field.name]) for field in fields(entity_type)})


def _value(hint: Any) -> Any:
    if get_origin(hint) is tuple:
        return (_value(get_args(hint)[0]),)
    if get_args(hint):
        return _value(next(of for of in get_args(hint) if of is not type(None)))
    if is_dataclass(hint) and isinstance(hint, type):
        return filled_entity(hint)
    if issubclass(hint, ErrorCode):
        return ErrorCode.none
    if issubclass(hint, timedelta):
        return hint.parse(timedelta(milliseconds=5))
    if issubclass(hint, datetime):
        return hint.parse(datetime(2026, 1, 1, tzinfo=UTC))
    base = next(base for base in VALUES if issubclass(hint, base))
    return hint(VALUES[base]) if hint not in (UUID, bool) else VALUES[base]
