"""Between our messages and Kafka's wire types: one projection for all APIs and all versions, both ways.

A message of :mod:`coordinator_logic.messages` holds the fields of every version of its API; a wire type of kio holds
those of one version, under the same names. So the fields of the two classes say all there is to say:

* what a version lacks is dropped on the way out, and has our default, or its type's empty value, on the way in;
* times are ``timedelta`` at kio (``session_timeout``) and milliseconds here (``session_timeout_ms``);
* error codes are an enum at kio and numbers here;
* null where the other side cannot say so is the empty value. Kafka does the same: before v7 of JoinGroup, "no
  protocol" is ``""``.

``throttleTimeMs`` is always 0: there are no quotas over topics.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from coordinator_logic.messages import Message

__all__ = ["UnprojectableType", "from_wire", "to_wire"]

WireT = TypeVar("WireT", bound=Entity)
MessageT = TypeVar("MessageT", bound=Message)
Convert = Callable[[Any], Any]

THROTTLE_TIME = "throttle_time"
NOT_THROTTLED = timedelta(0)
MILLISECOND = timedelta(milliseconds=1)
EMPTY_VALUES: dict[type, Any] = {str: "", bytes: b"", bool: False, int: 0}


class UnprojectableType(TypeError):
    """A wire type and a message type that do not belong together: a field of one has no place in the other."""


def to_wire(message: Message, wire_type: type[WireT]) -> WireT:
    """The message as a payload of one version.

    Raises :class:`UnprojectableType` when the version has a required field that the message lacks, ``ValueError``
    for an error code that Kafka does not know.
    """
    values = {
        field.wire_name: field.to_wire(getattr(message, field.name)) for field in _shared(wire_type, type(message))
    }
    return wire_type(**_unknown_to_us(wire_type, type(message)), **values)


def from_wire(payload: Entity, message_type: type[MessageT]) -> MessageT:
    """A payload of any version as our message.

    Raises :class:`UnprojectableType` when the version has a required field that the message lacks.
    """
    wire_type = type(payload)
    _unknown_to_us(wire_type, message_type)
    values = {
        field.name: field.from_wire(getattr(payload, field.wire_name)) for field in _shared(wire_type, message_type)
    }
    return message_type(**_unknown_to_version(wire_type, message_type), **values)


@dataclass(frozen=True, slots=True)
class _SharedField:
    """A field that both types have, and how its values are converted."""

    name: str
    wire_name: str
    to_wire: Convert
    from_wire: Convert


@dataclass(frozen=True, slots=True)
class _Hint:
    """What a type annotation says: of what (an array's items), in an array or not, nullable or not."""

    of: Any
    is_array: bool
    is_nullable: bool

    @property
    def empty(self) -> Any:
        if self.is_array:
            return ()
        return EMPTY_VALUES.get(self.of)


def _read_hint(annotation: Any) -> _Hint:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        (inner,) = (member for member in get_args(annotation) if member is not NoneType)
        hint = _read_hint(inner)
        return _Hint(hint.of, hint.is_array, is_nullable=True)
    if get_origin(annotation) in (list, tuple):
        item = _read_hint(get_args(annotation)[0])
        return _Hint(item.of, is_array=True, is_nullable=False)
    base = next(
        (plain for plain in EMPTY_VALUES if isinstance(annotation, type) and issubclass(annotation, plain)), None
    )
    # bool is an int to Python, and kio's int16 and TopicName are int and str.
    return _Hint(bool if annotation is bool else base or annotation, is_array=False, is_nullable=False)


@cache
def _hints(of_type: type) -> dict[str, _Hint]:
    annotations = get_type_hints(of_type, include_extras=True)
    named = fields(of_type) if is_dataclass(of_type) else msgspec.structs.fields(of_type)
    names = [field.name for field in named]
    return {name: _read_hint(annotations[name]) for name in names}


@cache
def _our_names(wire_type: type[Entity]) -> dict[str, str]:
    """Our name of each field of a wire type."""
    names = {}
    for field in fields(wire_type):
        is_time = str(field.metadata.get("kafka_type")).startswith("timedelta")
        names[field.name] = f"{field.name}_ms" if is_time else field.name
    return names


@cache
def _shared(wire_type: type[Entity], message_type: type[Message]) -> tuple[_SharedField, ...]:
    wire_hints, our_hints = _hints(wire_type), _hints(message_type)
    kafka_types = {field.name: field.metadata.get("kafka_type") for field in fields(wire_type)}
    shared = []
    for wire_name, name in _our_names(wire_type).items():
        if name not in our_hints:
            continue
        ours, theirs = our_hints[name], wire_hints[wire_name]
        outwards, inwards = _converters(kafka_types[wire_name], ours, theirs)
        shared.append(
            _SharedField(
                name,
                wire_name,
                _whole(outwards, tuple, theirs) if ours.is_array else _single(outwards, theirs),
                _whole(inwards, list, ours) if ours.is_array else _single(inwards, ours),
            )
        )
    return tuple(shared)


def _converters(kafka_type: str | None, ours: _Hint, theirs: _Hint) -> tuple[Convert, Convert]:
    """How a value (of an array: an item) is converted to the wire's type and back."""
    if ours.is_array != theirs.is_array:
        raise UnprojectableType(f"{ours.of} and {theirs.of}: one of them is an array")
    if kafka_type == "error_code":
        return ErrorCode, int
    if kafka_type is not None and kafka_type.startswith("timedelta"):
        return lambda ms: timedelta(milliseconds=ms), lambda time: time // MILLISECOND
    if is_dataclass(theirs.of):
        wire_type: Any = theirs.of
        message_type = ours.of
        return lambda message: to_wire(message, wire_type), lambda payload: from_wire(payload, message_type)
    return _same, _same


def _same(value: Any) -> Any:
    return value


def _single(convert: Convert, target: _Hint) -> Convert:
    null = None if target.is_nullable else target.empty
    return lambda value: null if value is None else convert(value)


def _whole(convert: Convert, collect: Callable[[Any], Any], target: _Hint) -> Convert:
    null = None if target.is_nullable else collect(())
    return lambda values: null if values is None else collect(map(convert, values))


@cache
def _unknown_to_us(wire_type: type[Entity], message_type: type[Message]) -> dict[str, Any]:
    """Values for the fields of a wire type that our message lacks."""
    values = {}
    for field in fields(wire_type):
        if _our_names(wire_type)[field.name] in _hints(message_type):
            continue
        if field.name == THROTTLE_TIME:
            values[field.name] = NOT_THROTTLED
        elif field.default is MISSING:
            raise UnprojectableType(f"{message_type.__name__} has no field for {field.name} of {wire_type}")
    return values


@cache
def _unknown_to_version(wire_type: type[Entity], message_type: type[Message]) -> dict[str, Any]:
    """Values for the fields of our message that a version lacks and that have no default: their empty values.

    They are immutable, so one set of them serves all messages.
    """
    known = set(_our_names(wire_type).values())
    required = {field.name for field in msgspec.structs.fields(message_type) if field.required}
    hints = _hints(message_type)
    return {name: None if hints[name].is_nullable else hints[name].empty for name in hints if name in required - known}
