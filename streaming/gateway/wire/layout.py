"""Where the attributes of an object lie in a request or response of one version.

A frame is read as, and written from, objects of one of two kinds: entities of kio, which have the fields of one
version, or messages of :mod:`coordinator_logic.messages`, which have the fields of every version of their API. The
layout follows from the fields of both classes, which have the same names:

* A field that a version lacks is not written. When reading it gets the message's default, or its type's empty value.
* Times are ``timedelta`` in kio (``session_timeout``) and milliseconds in messages (``session_timeout_ms``).
* Ids of topics are UUIDs in kio and Kafka's text form in messages; null there is the empty text here.
* Error codes are an enum in kio and numbers in messages.
* Null becomes the empty value where the other side is not nullable. Kafka does the same: before v7 of JoinGroup, "no
  protocol" is ``""``.

``throttleTimeMs`` of a message is always 0: the gateway enforces no quotas.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from functools import cache, partial
from io import BytesIO
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from kio.serial import entity_reader, readers

from streaming.gateway.wire.values import MESSAGE_CODECS, Reader, Writer, value_codec

THROTTLE_TIME = "throttle_time"
NOT_THROTTLED = timedelta(0)
NO_TAGGED_FIELDS = b"\0"


class LayoutMismatch(TypeError):
    """A version has a required field that the message lacks, or a field differs in shape."""


class FieldLayout(NamedTuple):
    """A value, an entity, or an array of either.

    name: the object's attribute; empty for a field that the object lacks, of which ``default`` is written.
    read, write: for a value or a flat entity; of an array, for its items. None for any other entity.
    entity: None for a value; of an array, that of its items.
    is_value: whether it is neither an entity nor an array.
    is_nullable: whether the wire can have null in place of the entity or the array.
    is_flexible: whether an array has a compact length.
    collect: makes the object's array of the items. ``null``: makes what it has for a null array.
    default: a tagged field with this value is not written.
    """

    name: str
    read: Reader | None
    write: Writer | None
    entity: "EntityLayout | None"
    is_value: bool
    is_array: bool
    is_nullable: bool
    is_flexible: bool
    collect: Callable[[Sequence[Any]], Any]
    null: Callable[[], Any]
    default: Any


class EntityLayout(NamedTuple):
    """The fields of an entity in their order, and the tagged ones by tag, in ascending order.

    make: makes the object of its attributes; ``absent`` are those that the version lacks and the object must have.
    read, write: for a flat entity, all of whose fields are values. ``read`` raises ``KeyError`` for tagged fields that
        it does not know.
    """

    make: Callable[..., Any]
    absent: Mapping[str, Any]
    is_flexible: bool
    fields: tuple[FieldLayout, ...]
    tagged: Mapping[int, FieldLayout]
    read: Reader | None = None
    write: Writer | None = None


@cache
def layout_of(entity_type: Any, object_type: Any) -> EntityLayout:
    """Return the layout of a type of kio for objects of that type, or of a type of messages.

    Raises :class:`LayoutMismatch`.
    """
    attributes = _attributes(object_type)
    plain, tagged = [], {}
    for each in fields(entity_type):
        field = _field_layout(entity_type, object_type, each)
        if "tag" in each.metadata:
            tagged[int(each.metadata["tag"])] = field
        else:
            plain.append(field)
    names = {field.name for field in (*plain, *tagged.values())}
    absent = {name: hint.empty for name, hint in attributes.items() if hint.is_required and name not in names}
    make = partial(_make_without_unnamed, object_type) if "" in names else object_type
    layout = EntityLayout(make, absent, entity_type.__flexible__, tuple(plain), dict(sorted(tagged.items())))
    if tagged or not all(field.is_value for field in plain):
        return layout
    layout = layout._replace(write=_flat_writer(layout))
    if entity_type is object_type:
        return layout._replace(read=entity_reader(entity_type))
    is_flat_object = "" not in names and not any(hint.is_array for hint in attributes.values())
    return layout._replace(read=_flat_reader(layout, object_type)) if is_flat_object else layout


def _make_without_unnamed(object_type: Any, **values: Any) -> Any:
    del values[""]
    return object_type(**values)


def _flat_reader(layout: EntityLayout, message_type: Any) -> Reader:
    """The reader of messages that have only values; it makes them of positional arguments, which is faster."""
    attributes = msgspec.structs.fields(message_type)
    defaults = [layout.absent.get(attribute.name, attribute.default) for attribute in attributes]
    positions = {attribute.name: position for position, attribute in enumerate(attributes)}
    reads = [(positions[field.name], field.read) for field in layout.fields if field.read is not None]
    is_flexible = layout.is_flexible

    def read(frame: bytes, offset: int) -> tuple[Any, int]:
        values = defaults.copy()
        at = offset
        for position, read_value in reads:
            values[position], size = read_value(frame, at)
            at += size
        if is_flexible:
            tagged, size = readers.read_unsigned_varint(frame, at)
            if tagged:
                raise KeyError(tagged)
            at += size
        return message_type(*values), at - offset

    return read


def _flat_writer(layout: EntityLayout) -> Writer:
    writes = [(field.name, field.write, field.default) for field in layout.fields if field.write is not None]
    is_flexible = layout.is_flexible

    def write(buffer: BytesIO, source: Any) -> None:
        for name, write_value, default in writes:
            write_value(buffer, getattr(source, name) if name else default)
        if is_flexible:
            buffer.write(NO_TAGGED_FIELDS)

    return write


class _Hint(NamedTuple):
    """A type annotation, reduced: the type (of an array: of its items), whether an array, whether nullable.

    ``is_required``: whether an object cannot be made without a value.
    """

    base: Any
    is_array: bool
    is_nullable: bool
    is_required: bool = True

    @property
    def empty(self) -> Any:
        return None if self.is_nullable else [] if self.is_array else self.base()


def _hint(annotation: Any) -> _Hint:
    inner = _not_null(annotation)
    is_array = get_origin(inner) in (list, tuple)
    base = _not_null(get_args(inner)[0]) if is_array else inner
    return _Hint(base, is_array, inner is not annotation)


def _not_null(annotation: Any) -> Any:
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    (inner,) = (member for member in get_args(annotation) if member is not NoneType)
    return inner


@cache
def _attributes(object_type: Any) -> Mapping[str, _Hint]:
    hints = {name: _hint(annotation) for name, annotation in get_type_hints(object_type).items()}
    if is_dataclass(object_type):
        return {field.name: hints[field.name] for field in fields(object_type)}
    return {
        field.name: hints[field.name]._replace(is_required=field.required)
        for field in msgspec.structs.fields(object_type)
    }


def _attribute_name(field: Any) -> str:
    """The name of a message's attribute for a field."""
    if str(field.metadata.get("kafka_type")).startswith("timedelta"):
        return f"{field.name}_ms"
    return str(field.name)


def _field_layout(entity_type: Any, object_type: Any, field: Any) -> FieldLayout:
    attributes = _attributes(object_type)
    is_message = entity_type is not object_type
    name = _attribute_name(field) if is_message else field.name
    wire, own, default = _hint(field.type), attributes.get(name), field.default
    if own is None:
        default = NOT_THROTTLED if field.name == THROTTLE_TIME else default
        if default is MISSING:
            raise LayoutMismatch(f"{object_type.__name__} has no field for {field.name} of {entity_type}")
        name, own, is_message = "", wire, False
    if own.is_array != wire.is_array:
        raise LayoutMismatch(f"{field.name} of {entity_type} or of {object_type} is an array, the other is none")
    # Whether a tagged value is null follows from its presence, and an array has no null items.
    is_nullable = wire.is_nullable and "tag" not in field.metadata
    entity, read, write = None, None, None
    if is_dataclass(wire.base):
        entity = layout_of(cast("Any", wire.base), own.base)
        if wire.is_array or not is_nullable:
            read, write = entity.read, entity.write
    else:
        codec = MESSAGE_CODECS.get(field.metadata["kafka_type"]) if is_message else None
        is_nullable_value = is_nullable and not wire.is_array
        read, write = codec or value_codec(field.metadata["kafka_type"], entity_type.__flexible__, is_nullable_value)
        if codec is None and not wire.is_array:
            read, write = _emptied(read, write, is_nullable, own)
    collect = list if is_message else tuple
    null = NoneType if own.is_nullable or not is_message else list
    is_value, is_flexible = entity is None and not wire.is_array, entity_type.__flexible__
    return FieldLayout(
        name, read, write, entity, is_value, wire.is_array, is_nullable, is_flexible, collect, null, default
    )


def _emptied(read: Reader, write: Writer, is_nullable: bool, own: _Hint) -> tuple[Reader, Writer]:
    """The reader and the writer of a value that may be null on one side only, where the other has the empty value."""

    def read_empty(frame: bytes, offset: int) -> tuple[Any, int]:
        value, size = read(frame, offset)
        return own.base() if value is None else value, size

    def write_empty(buffer: BytesIO, value: Any) -> None:
        write(buffer, own.base() if value is None else value)

    if is_nullable and not own.is_nullable:
        return read_empty, write
    return (read, write_empty) if own.is_nullable and not is_nullable else (read, write)
