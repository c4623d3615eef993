"""Writes kio's entities in steps, so that a large response does not hold the event loop."""

import io
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, cast, get_args

from kio.serial import entity_writer, writers

from streaming.gateway.wire.tolerant_reader import ENTRIES_PER_STEP, Steps, item_type, run_steps

__all__ = ["has_arrays", "write_in_steps"]

Writer = Callable[[io.BytesIO, Any], None]

_WRITERS: Mapping[tuple[str, bool, bool], Writer] = {
    ("string", False, False): writers.write_legacy_string,
    ("string", False, True): writers.write_nullable_legacy_string,
    ("string", True, False): writers.write_compact_string,
    ("string", True, True): writers.write_nullable_compact_string,
    ("bytes", False, False): writers.write_legacy_bytes,
    ("bytes", False, True): writers.write_nullable_legacy_bytes,
    ("bytes", True, False): writers.write_compact_string,
    ("bytes", True, True): writers.write_nullable_compact_string,
}
"""By type, whether the entity is flexible (compact lengths), and whether the value can be null."""

_INTEGERS = ("int8", "int16", "int32", "int64", "uint16")
_NAMED_AS_WRITTEN = (*_INTEGERS, "float64", "uuid", "error_code", "timedelta_i32", "timedelta_i64", "datetime_i64")

_FIXED_SIZE_WRITERS: Mapping[str, Writer] = {
    "bool": writers.write_boolean,
    **{kafka_type: getattr(writers, f"write_{kafka_type}") for kafka_type in _NAMED_AS_WRITTEN},
}


class _FieldPlan(NamedTuple):
    """How to write a field, or each item of an array: with ``write``, or as an entity that has arrays itself."""

    name: str
    is_array: bool
    write: Writer | None


class _EntityPlan(NamedTuple):
    """How to write an entity: with ``write``, kio's writer, if it has no arrays; otherwise field by field.

    ``write_tagged`` is kio's writer of an entity whose ``fields`` are followed by tagged fields.
    """

    write: Writer | None
    is_flexible: bool
    fields: tuple[_FieldPlan, ...]
    write_tagged: Writer | None


def has_arrays(entity: Any) -> bool:
    """Whether writing the entity may take long."""
    entity_type: Any = type(entity)
    return _entity_plan(entity_type).write is None


def write_in_steps(buffer: io.BytesIO, entity: Any) -> Steps[None]:
    """Write an entity in steps of :data:`ENTRIES_PER_STEP` array entries. Raises what kio's writers raise."""
    yield from _Writing(buffer).entity(entity)


class _Writing:
    def __init__(self, buffer: io.BytesIO) -> None:
        self._buffer = buffer
        self._written_in_step = 0

    def entity(self, entity: Any) -> Steps[None]:
        entity_type: Any = type(entity)
        plan = _entity_plan(entity_type)
        if plan.write is not None:
            plan.write(self._buffer, entity)
            return
        yield from self._fields(plan, entity)
        if plan.write_tagged is not None:
            self._buffer.write(_tagged_fields(plan, plan.write_tagged, entity))
        elif plan.is_flexible:
            writers.write_empty_tagged_fields(self._buffer)

    def _fields(self, plan: _EntityPlan, entity: Any) -> Steps[None]:
        for field in plan.fields:
            value = getattr(entity, field.name)
            if field.is_array:
                yield from self._array(field, plan.is_flexible, value)
            elif field.write is not None:
                field.write(self._buffer, value)
            else:
                yield from self.entity(value)

    def _array(self, field: _FieldPlan, is_flexible: bool, items: Any) -> Steps[None]:
        write_length: Any = writers.write_compact_array_length if is_flexible else writers.write_legacy_array_length
        write_length(self._buffer, -1 if items is None else len(items))
        for item in items or ():
            if field.write is not None:
                field.write(self._buffer, item)
            else:
                yield from self.entity(item)
            self._written_in_step += 1
            if self._written_in_step >= ENTRIES_PER_STEP:
                self._written_in_step = 0
                yield


@cache
def _entity_plan(entity_type: Any) -> _EntityPlan:
    is_flexible = entity_type.__flexible__
    tagged = [field for field in fields(entity_type) if "tag" in field.metadata]
    plans = tuple(_field_plan(field, is_flexible) for field in fields(entity_type) if field not in tagged)
    has_arrays = any(plan.is_array or plan.write is None for plan in plans)
    writer = entity_writer(entity_type)
    return _EntityPlan(None if has_arrays else writer, is_flexible, plans, writer if tagged else None)


def _tagged_fields(plan: _EntityPlan, write: Writer, entity: Any) -> bytes:
    """Encode the tagged fields: what kio writes behind the other fields, of which the long ones are left out here."""
    short = replace(entity, **{field.name: () for field in plan.fields if field.is_array})
    before, whole = io.BytesIO(), io.BytesIO()
    run_steps(_Writing(before)._fields(plan, short))
    write(whole, short)
    return whole.getvalue()[before.tell() :]


def _field_plan(field: Any, is_flexible: bool) -> _FieldPlan:
    items = item_type(field.type)
    nullable_entity = next((each for each in get_args(field.type) if items is None and is_dataclass(each)), None)
    if nullable_entity is not None:
        return _FieldPlan(field.name, False, entity_writer(cast("Any", nullable_entity), nullable=True))
    value_type: Any = items or field.type
    is_entity = is_dataclass(value_type)
    if is_entity:
        return _FieldPlan(field.name, items is not None, _entity_plan(value_type).write)
    is_nullable = items is None and NoneType in get_args(field.type)
    return _FieldPlan(
        field.name, items is not None, _value_writer(field.metadata["kafka_type"], is_flexible, is_nullable)
    )


def _value_writer(kafka_type: str, is_flexible: bool, is_nullable: bool) -> Writer:
    if kafka_type == "datetime_i64" and is_nullable:
        return writers.write_nullable_datetime_i64
    if kafka_type in _FIXED_SIZE_WRITERS:
        return _FIXED_SIZE_WRITERS[kafka_type]
    # Records are bytes to everyone but their readers.
    return _WRITERS["bytes" if kafka_type == "records" else kafka_type, is_flexible, is_nullable]
