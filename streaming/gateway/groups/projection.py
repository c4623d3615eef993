"""Converts between the coordinator's messages and Kafka's wire types, for all APIs and versions.

A message of :mod:`coordinator_logic.messages` holds the fields of every version of its API. A wire type of kio holds
the fields of one version, under the same names. So the conversion follows from the fields of the two classes:

* A field that a version lacks is dropped when writing. When reading it gets the message's default, or its type's empty
  value.
* Times are ``timedelta`` in kio (``session_timeout``) and milliseconds in messages (``session_timeout_ms``).
* Ids of topics are UUIDs in kio and Kafka's text form in messages; null there is the empty text here.
* Error codes are an enum in kio and numbers in messages.
* Null becomes the empty value where the other side is not nullable. Kafka does the same: before v7 of JoinGroup, "no
  protocol" is ``""``.

``throttleTimeMs`` is always 0: the gateway enforces no quotas.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from coordinator_logic.messages import Message
from streaming.gateway.wire.lazy_list import LazyList
from streaming.gateway.wire.tolerant_reader import Steps
from streaming.gateway.wire.topic_ids import text_of_topic_id, topic_id_of_text

__all__ = ["UnprojectableType", "from_wire", "from_wire_in_steps", "to_wire", "to_wire_lazily"]

WireT = TypeVar("WireT", bound=Entity)
MessageT = TypeVar("MessageT", bound=Message)
Convert = Callable[[Any], Any]

THROTTLE_TIME = "throttle_time"
NOT_THROTTLED = timedelta(0)
MILLISECOND = timedelta(milliseconds=1)
EMPTY_VALUES: dict[type, Any] = {str: "", bytes: b"", bool: False, int: 0}


class UnprojectableType(TypeError):
    """A wire type has a required field that the message type lacks, or a field differs in shape."""


def to_wire(message: Message, wire_type: type[WireT]) -> WireT:
    """Convert a message to the payload of one version.

    Raises :class:`UnprojectableType` if the version has a required field that the message lacks, and ``ValueError``
    for an error code that Kafka does not define.
    """
    wire: WireT = _convert(message, _conversions(wire_type, type(message)).to_wire)
    return wire


def to_wire_lazily(message: Message, wire_type: type[WireT]) -> WireT:
    """Convert a message as :func:`to_wire` does, but the entities in its arrays only when they are written."""
    wire: WireT = _convert_lazily(message, _conversions(wire_type, type(message)).to_wire)
    return wire


def from_wire(payload: Entity, message_type: type[MessageT]) -> MessageT:
    """Convert a payload of any version to a message.

    Raises :class:`UnprojectableType` if the version has a required field that the message lacks.
    """
    message: MessageT = _convert(payload, _conversions(type(payload), message_type).from_wire)
    return message


def from_wire_in_steps(payload: Entity, message_type: type[MessageT]) -> Steps[MessageT]:
    """Convert a payload as :func:`from_wire` does, with a step for each entity in its arrays."""
    return _convert_in_steps(payload, _conversions(type(payload), message_type).from_wire)


class _Conversion(NamedTuple):
    """How an object of one type becomes one of another: the fields of both types, and values for the target's others.

    The values are immutable, so all objects share them.
    """

    target: Callable[..., Any]
    fields: tuple["_SharedField", ...]
    other_values: Mapping[str, Any]


class _Conversions(NamedTuple):
    """The conversions between a wire type and a message type."""

    to_wire: _Conversion
    from_wire: _Conversion


class _SharedField(NamedTuple):
    """A field that both types have.

    ``source`` and ``target`` are its names. Of an array of entities, ``items`` converts an item and ``collect`` makes
    the array; ``items`` is None for any other field.
    """

    source: str
    target: str
    convert: Convert
    items: _Conversion | None
    collect: Callable[[Any], Any]


def _convert(source: Any, conversion: _Conversion) -> Any:
    values = {field.target: field.convert(getattr(source, field.source)) for field in conversion.fields}
    return conversion.target(**conversion.other_values, **values)


def _convert_lazily(source: Any, conversion: _Conversion) -> Any:
    values = {}
    for field in conversion.fields:
        value = getattr(source, field.source)
        if field.items is None or not value:
            values[field.target] = field.convert(value)
        else:
            values[field.target] = LazyList(value, partial(_convert_lazily, conversion=field.items))
    return conversion.target(**conversion.other_values, **values)


def _convert_in_steps(source: Any, conversion: _Conversion) -> Steps[Any]:
    values = {}
    for field in conversion.fields:
        value = getattr(source, field.source)
        if field.items is None or not value:
            values[field.target] = field.convert(value)
            continue
        items = []
        for item in value:
            items.append((yield from _convert_in_steps(item, field.items)))
            yield
        values[field.target] = field.collect(items)
    return conversion.target(**conversion.other_values, **values)


@dataclass(frozen=True, slots=True)
class _Hint:
    """A type annotation, reduced: the type (of an array: of its items), whether an array, whether nullable."""

    base: Any
    is_array: bool
    is_nullable: bool

    @property
    def empty(self) -> Any:
        if self.is_array:
            return ()
        return EMPTY_VALUES.get(self.base)


def _read_hint(annotation: Any) -> _Hint:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        (inner,) = (member for member in get_args(annotation) if member is not NoneType)
        hint = _read_hint(inner)
        return _Hint(hint.base, hint.is_array, is_nullable=True)
    if get_origin(annotation) in (list, tuple):
        item = _read_hint(get_args(annotation)[0])
        return _Hint(item.base, is_array=True, is_nullable=False)
    base = next(
        (plain for plain in EMPTY_VALUES if isinstance(annotation, type) and issubclass(annotation, plain)), None
    )
    # bool is a subclass of int; kio's int16 and TopicName are subclasses of int and str.
    return _Hint(bool if annotation is bool else base or annotation, is_array=False, is_nullable=False)


@cache
def _hints(of_type: type) -> dict[str, _Hint]:
    annotations = get_type_hints(of_type, include_extras=True)
    named = fields(of_type) if is_dataclass(of_type) else msgspec.structs.fields(of_type)
    names = [field.name for field in named]
    return {name: _read_hint(annotations[name]) for name in names}


@cache
def _message_names(wire_type: type[Entity]) -> dict[str, str]:
    """The message's name for each field of a wire type."""
    names = {}
    for field in fields(wire_type):
        is_time = str(field.metadata.get("kafka_type")).startswith("timedelta")
        names[field.name] = f"{field.name}_ms" if is_time else field.name
    return names


@cache
def _conversions(wire_type: type[Entity], message_type: type[Message]) -> _Conversions:
    without_message = _fields_without_message(wire_type, message_type)
    wire_hints, message_hints = _hints(wire_type), _hints(message_type)
    kafka_types = {field.name: field.metadata.get("kafka_type") for field in fields(wire_type)}
    written, read = [], []
    for wire_name, name in _message_names(wire_type).items():
        if name not in message_hints:
            continue
        ours, theirs = message_hints[name], wire_hints[wire_name]
        if ours.is_array != theirs.is_array:
            raise UnprojectableType(f"{ours.base} and {theirs.base}: one of them is an array")
        is_entity = is_dataclass(theirs.base)
        entities = _conversions(theirs.base, ours.base) if is_entity else None
        to_value, from_value = _value_converters(kafka_types[wire_name], entities)
        to_item, from_item = entities if entities is not None and ours.is_array else (None, None)
        written.append(_SharedField(name, wire_name, _field_converter(to_value, tuple, theirs), to_item, tuple))
        read.append(_SharedField(wire_name, name, _field_converter(from_value, list, ours), from_item, list))
    return _Conversions(
        _Conversion(wire_type, tuple(written), without_message),
        _Conversion(message_type, tuple(read), _fields_without_version(wire_type, message_type)),
    )


def _value_converters(kafka_type: str | None, entities: _Conversions | None) -> tuple[Convert, Convert]:
    """The conversions of a value (of an array: of an item) to its wire type and back."""
    if kafka_type == "error_code":
        return ErrorCode, int
    if kafka_type == "uuid":
        return topic_id_of_text, text_of_topic_id
    if kafka_type is not None and kafka_type.startswith("timedelta"):
        return lambda ms: timedelta(milliseconds=ms), lambda time: time // MILLISECOND
    if entities is not None:
        return partial(_convert, conversion=entities.to_wire), partial(_convert, conversion=entities.from_wire)
    return _unchanged, _unchanged


def _unchanged(value: Any) -> Any:
    return value


def _field_converter(convert: Convert, collect: Callable[[Any], Any], target: _Hint) -> Convert:
    """The conversion of a field whose values, or whose items if it is an array, ``convert`` converts."""
    if not target.is_array:
        null = None if target.is_nullable else target.empty
        return lambda value: null if value is None else convert(value)
    null = None if target.is_nullable else collect(())
    if convert is _unchanged:
        return lambda values: null if values is None else collect(values)
    return lambda values: null if values is None else collect(map(convert, values))


def _fields_without_message(wire_type: type[Entity], message_type: type[Message]) -> dict[str, Any]:
    """Values for the fields of a wire type that the message lacks."""
    values = {}
    for field in fields(wire_type):
        if _message_names(wire_type)[field.name] in _hints(message_type):
            continue
        if field.name == THROTTLE_TIME:
            values[field.name] = NOT_THROTTLED
        elif field.default is MISSING:
            raise UnprojectableType(f"{message_type.__name__} has no field for {field.name} of {wire_type}")
    return values


def _fields_without_version(wire_type: type[Entity], message_type: type[Message]) -> dict[str, Any]:
    """Empty values for the message's required fields that the version lacks."""
    known = set(_message_names(wire_type).values())
    required = {field.name for field in msgspec.structs.fields(message_type) if field.required}
    hints = _hints(message_type)
    return {name: None if hints[name].is_nullable else hints[name].empty for name in hints if name in required - known}
