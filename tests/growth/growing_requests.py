"""Requests of every API with one field grown: the text, the bytes or the list that a client chooses.

They are made from the types of the messages, so that a new API or field is covered without a change here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.inspect import (
    BoolType,
    BytesType,
    CustomType,
    DictType,
    Field,
    IntType,
    ListType,
    RawType,
    StrType,
    StructType,
    Type,
    UnionType,
    type_info,
)

from coordinator_logic.embedded_protocols import Subscription, encode_subscription

__all__ = ["Grown", "grown_requests"]

GrowText = Callable[[int], str]
GrowBytes = Callable[[int], bytes]

TEXTS: Mapping[str, GrowText] = {
    "plain": lambda size: "x" * size,
    "escaped in JSON": lambda size: "\0" * size,
    "more than ASCII": lambda size: "\u00e9" * size,
    "repetitions": lambda size: "(x{1000})" * (size // 9),
    "unions": lambda size: "(x|)" * (size // 4),
    "named groups": lambda size: "".join(f"(?P<n{number}>.?)" for number in range(size // 12)),
    "brackets": lambda size: "(" * size,
    "backslashes": lambda size: "\\" * size,
    "digits": lambda size: "9" * size,
}
"""What a text is filled with: each is the worst of some parser."""

BYTES: Mapping[str, GrowBytes] = {
    "zeros": bytes,
    "ones": lambda size: b"\xff" * size,
    "a subscription": lambda size: encode_subscription(Subscription([f"topic-{n}" for n in range(size // 12)])),
}


class Grown(NamedTuple):
    """A way in which a request can grow.

    name: the field and what it is filled with. make: returns the request's body for a size, in characters, bytes or
    entries. is_list: whether the size counts entries.
    """

    name: str
    make: Callable[[int], Any]
    is_list: bool


class _Path(NamedTuple):
    """The way to a field, through the first entries of lists."""

    names: tuple[str, ...]
    type: Type
    name: str


def grown_requests(request_type: Any, values: Mapping[str, object]) -> Iterator[Grown]:
    """The ways in which a request can grow.

    values: by field name, as in JSON, the values of the fields that do not grow; a text or a number for all others.
    """
    root = type_info(request_type)
    assert isinstance(root, StructType)
    base = _example(root, "", values)
    for path in _growable(root, ()):
        for fill, grow in _fills(path.type, path.name, values):

            def make(size: int, path: _Path = path, grow: Callable[[int], Any] = grow) -> Any:
                return _replaced(base, path.names, grow(size))

            is_list = isinstance(path.type, ListType | DictType)
            yield Grown(f"{'.'.join(path.names)}: {fill}", make, is_list)


def _growable(struct: StructType, before: tuple[str, ...]) -> Iterator[_Path]:
    for field in struct.fields:
        kind, names = _without_none(field.type), (*before, field.encode_name)
        if isinstance(kind, StrType | BytesType | ListType | DictType):
            yield _Path(names, kind, field.encode_name)
        if isinstance(kind, ListType) and isinstance(inner := _without_none(kind.item_type), StructType):
            yield from _growable(inner, names)
        elif isinstance(kind, ListType) and isinstance(inner, StrType):
            yield _Path((*names, "0"), inner, field.encode_name)
        elif isinstance(kind, StructType):
            yield from _growable(kind, names)


def _fills(kind: Type, name: str, values: Mapping[str, object]) -> Iterator[tuple[str, Callable[[int], Any]]]:
    if isinstance(kind, StrType):
        yield from TEXTS.items()
    elif isinstance(kind, BytesType):
        yield from BYTES.items()
    elif isinstance(kind, DictType):
        value = _example(kind.value_type, name, values)
        yield "keys", lambda size: {f"key-{number}": value for number in range(size)}
    else:
        assert isinstance(kind, ListType)
        item = _without_none(kind.item_type)
        yield "equal entries", lambda size: [_example(item, name, values)] * size
        yield "different entries", lambda size: [_different(item, name, values, number) for number in range(size)]


def _different(kind: Type, name: str, values: Mapping[str, object], number: int) -> Any:
    """An example of an entry of a list whose texts and numbers no other entry has."""
    if isinstance(kind, StructType):
        made = _example(kind, name, values)
        first = next((field for field in kind.fields if isinstance(_without_none(field.type), StrType | IntType)), None)
        if first is not None:
            made[first.encode_name] = _different(_without_none(first.type), first.encode_name, values, number)
        return made
    return f"{name}-{number}" if isinstance(kind, StrType) else number


def _example(kind: Type, name: str, values: Mapping[str, object]) -> Any:
    """A small valid value of a type, as JSON has it."""
    kind = _without_none(kind)
    if (
        name in values
        and not isinstance(kind, StructType)
        and isinstance(kind, ListType) == isinstance(values[name], list)
    ):
        return values[name]
    if isinstance(kind, StructType):
        return {
            field.encode_name: _example(field.type, field.encode_name, values)
            for field in kind.fields
            if _has(field, values)
        }
    if isinstance(kind, ListType):
        return [_example(kind.item_type, name, values)]
    if isinstance(kind, StrType):
        return "text"
    if isinstance(kind, BytesType):
        return b""
    if isinstance(kind, DictType | RawType | CustomType):
        return {}
    return isinstance(kind, BoolType) or 1


def _has(field: Field, values: Mapping[str, object]) -> bool:
    return field.required or field.encode_name in values or isinstance(_without_none(field.type), ListType | StructType)


def _without_none(kind: Type) -> Type:
    if isinstance(kind, UnionType):
        return next(each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType))
    return kind


def _replaced(body: Any, names: tuple[str, ...], value: Any) -> Any:
    """The body with the value at the end of the path, in the first entry of each list on it."""
    if not names:
        return value
    if isinstance(body, list):
        if names[0] == "0":
            return [value]
        return [_replaced(body[0] if body else {}, names, value)]
    return {**body, names[0]: _replaced(body.get(names[0], {}), names[1:], value)}
