"""Reads kio's entities as a server must that does not trust their sender.

kio's own reader is used for entities without arrays only. It reserves memory for as many items as an array announces:
a request of 20 bytes that announces 2^32 ends the process. It also reads an entity in a single call: 400,000 strings
take a quarter of a second, in which the event loop would serve nobody else; here, a large entity is read in steps. And
it raises ``KeyError`` for a tagged field that its schemas lack, which the protocol wants skipped (KIP-482), and
``OverflowError`` for a time beyond the range of a ``timedelta``.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_origin

from kio.serial import entity_reader, readers
from kio.serial.errors import BufferUnderflow, SerialError, UnexpectedNull

__all__ = [
    "ENTRIES_PER_STEP",
    "Reader",
    "Steps",
    "TooManyEntries",
    "item_type",
    "read_entities",
    "read_entity",
    "read_in_steps",
    "run_steps",
]

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A computation that yields after each step and returns its result."""

Reader = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value at an offset; returns it with its size in bytes."""

ENTRIES_PER_STEP = 16
"""A step takes 0.02 ms, or 0.15 ms if it makes the entries that it writes: less than a turn."""

MILLISECOND = timedelta(milliseconds=1)


def _read_timedelta_i64(frame: bytes, offset: int) -> tuple[timedelta, int]:
    """Read milliseconds as a ``timedelta``; what it cannot hold (2.7 million years) becomes the longest that it can."""
    milliseconds, size = readers.read_int64(frame, offset)
    shortest, longest = timedelta.min // MILLISECOND, timedelta.max // MILLISECOND
    return timedelta(milliseconds=min(max(milliseconds, shortest), longest)), size


_READERS: Mapping[tuple[str, bool, bool], Reader] = {
    ("string", False, False): readers.read_legacy_string,
    ("string", False, True): readers.read_nullable_legacy_string,
    ("string", True, False): readers.read_compact_string,
    ("string", True, True): readers.read_compact_string_nullable,
    ("bytes", False, False): readers.read_legacy_bytes,
    ("bytes", False, True): readers.read_nullable_legacy_bytes,
    ("bytes", True, False): readers.read_compact_string_as_bytes,
    ("bytes", True, True): readers.read_compact_string_as_bytes_nullable,
}
"""By type, whether the entity is flexible (compact lengths), and whether the value can be null."""

_FIXED_SIZE_READERS: Mapping[str, Reader] = {
    "bool": readers.read_boolean,
    "int8": readers.read_int8,
    "int16": readers.read_int16,
    "int32": readers.read_int32,
    "int64": readers.read_int64,
    "uint16": readers.read_uint16,
    "float64": readers.read_float64,
    "uuid": readers.read_uuid,
    "error_code": readers.read_error_code,
    "timedelta_i32": readers.read_timedelta_i32,
    "timedelta_i64": _read_timedelta_i64,
}


class TooManyEntries(SerialError):
    """The arrays and tagged fields of an entity have more entries than allowed."""


class _FieldPlan(NamedTuple):
    """How to read a field, or each item of an array: with ``read``, or as an entity of type ``entity``."""

    name: str
    is_array: bool
    read: Reader | None
    entity: type[Any] | None


class _EntityPlan(NamedTuple):
    """``read`` is kio's reader, for an entity without arrays."""

    read: Reader | None
    is_flexible: bool
    fields: tuple[_FieldPlan, ...]
    tagged: Mapping[int, _FieldPlan]


def read_entity(entity_type: Any, frame: bytes, offset: int) -> tuple[Any, int]:
    """Read an entity at once; returns it with its size in bytes.

    Raises one of kio's ``SerialError``, or ``ValueError``.
    """
    read = _entity_plan(entity_type).read
    if read is not None:
        try:
            return read(frame, offset)
        except KeyError:
            # A tagged field that kio does not know.
            pass
    return run_steps(read_in_steps(entity_type, frame, offset, max_entries=len(frame) - offset))


def read_entities(entity_type: Any, frame: bytes, offset: int) -> tuple[Sequence[Any] | None, int]:
    """Read an array of entities at once; returns them, None for a null array, with its size in bytes.

    Raises what :func:`read_entity` raises.
    """
    reading = _Reading(frame, offset, max_entries=len(frame) - offset)
    plan = _entity_plan(entity_type)
    entities = run_steps(reading.field(_FieldPlan("", True, plan.read, entity_type), plan.is_flexible))
    return entities, reading.at - offset


def read_in_steps(entity_type: type[Any], frame: bytes, offset: int, max_entries: int) -> Steps[tuple[Any, int]]:
    """Read an entity in steps of :data:`ENTRIES_PER_STEP` entries; returns it with its size in bytes.

    Raises :class:`TooManyEntries` as soon as the arrays and tagged fields announce more than ``max_entries`` together,
    and otherwise what :func:`read_entity` raises.
    """
    reading = _Reading(frame, offset, max_entries)
    entity = yield from reading.entity(entity_type)
    return entity, reading.at - offset


def run_steps(steps: Steps[T]) -> T:
    """Run all steps at once."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            return finished.value  # type: ignore[no-any-return]


class _Reading:
    """The place in a frame, and the entries that were announced so far."""

    def __init__(self, frame: bytes, offset: int, max_entries: int) -> None:
        self.at = offset
        self._frame = frame
        self._entries_left = max_entries
        self._read_in_step = 0

    def entity(self, entity_type: Any) -> Steps[Any]:
        plan = _entity_plan(entity_type)
        values: dict[str, Any] = {}
        for field in plan.fields:
            values[field.name] = yield from self.field(field, plan.is_flexible)
        if plan.is_flexible:
            yield from self._tagged_fields(plan, values)
        return entity_type(**values)

    def field(self, field: _FieldPlan, is_flexible: bool) -> Steps[Any]:
        if not field.is_array:
            return (yield from self._value(field))
        count = self._array_length(is_flexible)
        if count is None:
            return None
        self._announce(count)
        items = []
        for _ in range(count):
            items.append((yield from self._value(field)))
            self._read_in_step += 1
            if self._read_in_step >= ENTRIES_PER_STEP:
                self._read_in_step = 0
                yield
        return tuple(items)

    def _value(self, field: _FieldPlan) -> Steps[Any]:
        if field.read is None:
            assert field.entity is not None
            return (yield from self.entity(field.entity))
        try:
            return self._take(field.read)
        except KeyError:
            assert field.entity is not None, "only entities have tagged fields"
            return (yield from self.entity(field.entity))

    def _tagged_fields(self, plan: _EntityPlan, values: dict[str, Any]) -> Steps[None]:
        count = self._take(readers.read_unsigned_varint)
        self._announce(count)
        for _ in range(count):
            tag = self._take(readers.read_unsigned_varint)
            size = self._take(readers.read_unsigned_varint)
            end = self.at + size
            if end > len(self._frame):
                raise BufferUnderflow(f"tagged field {tag} ends after the frame")
            if tag in plan.tagged:
                values[plan.tagged[tag].name] = yield from self.field(plan.tagged[tag], is_flexible=True)
            self.at = end
            self._read_in_step += 1
            if self._read_in_step >= ENTRIES_PER_STEP:
                self._read_in_step = 0
                yield

    def _array_length(self, is_flexible: bool) -> int | None:
        if is_flexible:
            compact: int | None = self._take(readers.read_compact_array_length)
            return compact
        length: int = self._take(readers.read_legacy_array_length)
        if length < -1:
            raise UnexpectedNull(f"an array of {length} items")
        return length if length >= 0 else None

    def _announce(self, count: int) -> None:
        self._entries_left -= count
        if self._entries_left < 0:
            raise TooManyEntries("the arrays have too many entries")

    def _take(self, read: Reader) -> Any:
        value, size = read(self._frame, self.at)
        self.at += size
        return value


@cache
def _entity_plan(entity_type: Any) -> _EntityPlan:
    is_flexible = entity_type.__flexible__
    plain, tagged = [], {}
    for field in fields(entity_type):
        plan = _field_plan(entity_type, field, is_flexible)
        if "tag" in field.metadata:
            tagged[int(field.metadata["tag"])] = plan
        else:
            plain.append(plan)
    has_arrays = any(plan.is_array or plan.read is None for plan in (*plain, *tagged.values()))
    return _EntityPlan(None if has_arrays else entity_reader(entity_type), is_flexible, tuple(plain), tagged)


def _field_plan(entity_type: type[Any], field: Any, is_flexible: bool) -> _FieldPlan:
    is_array = item_type(field.type) is not None
    nullable_entity = next((each for each in get_args(field.type) if not is_array and is_dataclass(each)), None)
    if nullable_entity is not None:
        # Of the APIs that the gateway reads, only responses have such a field.
        return _FieldPlan(field.name, False, entity_reader(cast("Any", nullable_entity), nullable=True), None)
    value_type: Any = item_type(field.type) or field.type
    is_entity = is_dataclass(value_type)
    if is_entity:
        return _FieldPlan(field.name, is_array, _entity_plan(value_type).read, value_type)
    is_nullable = not is_array and "tag" not in field.metadata and NoneType in get_args(field.type)
    # The client id has a legacy length even in flexible headers.
    is_client_id = entity_type.__name__ == "RequestHeader" and field.name == "client_id"
    read = _value_reader(field.metadata["kafka_type"], is_flexible and not is_client_id, is_nullable)
    return _FieldPlan(field.name, is_array, read, None)


def _value_reader(kafka_type: str, is_flexible: bool, is_nullable: bool) -> Reader:
    if kafka_type == "datetime_i64":
        return readers.read_nullable_datetime_i64 if is_nullable else readers.read_datetime_i64
    if kafka_type in _FIXED_SIZE_READERS:
        return _FIXED_SIZE_READERS[kafka_type]
    # Records are bytes to everyone but their readers.
    return _READERS["bytes" if kafka_type == "records" else kafka_type, is_flexible, is_nullable]


def item_type(annotation: Any) -> Any:
    """Return the type of an array's items; None for a field that is no array."""
    for candidate in (annotation, *get_args(annotation)):
        if get_origin(candidate) is tuple:
            return get_args(candidate)[0]
    return None
