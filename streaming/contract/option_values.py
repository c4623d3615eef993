"""The types that several options have, and what the values of an option's type look like, in words."""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

_PORT = r"(6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|\d{1,4})"
_HOST = r"(\w+://)?(\[[^\]\s]+\]|[^\s,:/\[\]]+)"

Addresses = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^{_HOST}:{_PORT}(\s*,\s*{_HOST}:{_PORT})*\Z",
        description="HOST:PORT, or several of them with commas between them",
    ),
]
"""Addresses of Kafka brokers. Kafka's Java client needs the port; a security protocol may precede the host."""

ListenAddress = Annotated[str, msgspec.Meta(pattern=rf"^\S*:{_PORT}\Z", description="HOST:PORT")]
"""An address to listen at. Without a host, or with ``0.0.0.0``, it is at all addresses of the machine."""

TopicPrefix = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[a-zA-Z0-9._-]{0,200}\Z",
        description="a prefix of topic names: at most 200 letters, digits, dots, underscores and hyphens",
    ),
]

HostName = Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9._-]+\Z", description="the name of a host, without a port")]

KeyAndValue = Annotated[str, msgspec.Meta(pattern=r"^[^=]+=", description="KEY=VALUE")]

NotEmpty = Annotated[str, msgspec.Meta(min_length=1, description="a text that is not empty")]


def converted(value: object, option_type: Any) -> Any:
    """The value of an option, converted to the option's type; texts may be numbers, true or false.

    Raises:
        ValueError: it is not one of the type's values. The message says which are.
    """
    try:
        return msgspec.convert(value, option_type, strict=False)
    except msgspec.ValidationError:
        raise ValueError(f"{value!r} is not {described(option_type)}") from None


def described(option_type: Any) -> str:
    """What the values of an option's type look like: ``one of: memory, rocksdb``, ``a whole number, 1 or more``."""
    return _described(msgspec.inspect.type_info(option_type))


def one_of(values: Iterable[str]) -> str:
    """What an option takes that takes one of these values."""
    return f"one of: {', '.join(values)}"


def whole_number(least: float | None, greatest: float | None) -> str:
    """What an option takes that takes a whole number within bounds."""
    if least is not None and greatest is not None:
        return f"a whole number from {least} to {greatest}"
    if least is not None:
        return f"a whole number, {least} or more"
    return "a whole number" if greatest is None else f"a whole number, {greatest} or less"


def _described(info: Any) -> str:
    match info:
        case msgspec.inspect.Metadata(type=inner, extra_json_schema=schema):
            return str((schema or {}).get("description") or _described(inner))
        case msgspec.inspect.UnionType(types=types):
            return " or ".join(_described(each) for each in types if not isinstance(each, msgspec.inspect.NoneType))
        case msgspec.inspect.IntType(ge=least, le=greatest):
            return whole_number(least, greatest)
        case msgspec.inspect.LiteralType(values=values):
            return one_of(map(str, values))
        case msgspec.inspect.EnumType(cls=enumeration):
            return one_of(str(each.value) for each in enumeration)
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.StrType():
            return "a text"
    raise TypeError(f"an option of the type {info!r} has no description")
