"""Parts of a snapshot that stay encoded until a request needs them: most requests are heartbeats of one member."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, NamedTuple, Self, TypeVar

import msgspec

T = TypeVar("T")
OutlineT = TypeVar("OutlineT")


class UnreadablePart(ValueError):
    """The bytes of a part of a snapshot are not what they should be. Every use of the part raises it again."""


class ItemCodec(NamedTuple, Generic[T]):
    """How a snapshot holds an item; ``decode`` raises ``msgspec.DecodeError``. ``what`` names the items in errors."""

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]
    what: str


class StoredItems(MutableMapping[str, T]):
    """Items of a snapshot by key, each decoded when it is first used. Every access can raise :class:`UnreadablePart`.

    A snapshot holds each item as a string of bytes, which a reader passes over at once, however much the item holds.
    An item changes only by being set again, so that the others need not be encoded again.

    Args:
        encoded: The encoded items; the mapping becomes their owner.
        codec: Encodes and decodes an item.
    """

    __slots__ = ("_changed", "_codec", "_decoded", "_encoded")

    def __init__(self, encoded: dict[str, bytes], codec: ItemCodec[T]) -> None:
        # All keys in their order; the bytes of an item that has changed are outdated.
        self._encoded = encoded
        self._decoded: dict[str, T] = {}
        self._changed: set[str] = set()
        self._codec = codec

    @classmethod
    def of(cls, items: Mapping[str, T], codec: ItemCodec[T]) -> Self:
        """Items that are not encoded yet; arguments as of the class."""
        stored = cls({}, codec)
        stored.update(items)
        return stored

    def outline(self, key: str, decode: Callable[[bytes], OutlineT]) -> T | OutlineT | None:
        """An item, or what ``decode`` reads of it if nothing has needed the item yet; None if there is none."""
        item = self._decoded.get(key)
        if item is not None:
            return item
        encoded = self._encoded.get(key)
        return None if encoded is None else self._read(encoded, decode)

    def for_snapshot(self) -> dict[str, bytes]:
        """The encoded items: the original bytes of those that have not changed."""
        for key in self._changed:
            self._encoded[key] = self._codec.encode(self._decoded[key])
        self._changed.clear()
        return self._encoded

    def __getitem__(self, key: str) -> T:
        item = self._decoded.get(key)
        if item is None:
            item = self._decoded[key] = self._read(self._encoded[key], self._codec.decode)
        return item

    def _read(self, encoded: bytes, decode: Callable[[bytes], OutlineT]) -> OutlineT:
        try:
            return decode(encoded)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadablePart(f"its {self._codec.what} are damaged: {error}") from error

    def __setitem__(self, key: str, item: T) -> None:
        self._encoded.setdefault(key, b"")
        self._decoded[key] = item
        self._changed.add(key)

    def __delitem__(self, key: str) -> None:
        del self._encoded[key]
        self._decoded.pop(key, None)
        self._changed.discard(key)

    def __contains__(self, key: object) -> bool:
        # The one of MutableMapping would decode the item.
        return key in self._encoded

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)


def stored_struct(struct: type[msgspec.Struct], types: Mapping[str, Any], tag: str | None = None) -> Any:
    """The struct as a snapshot stores it: with ``types`` for some of its fields, and the tag of a group's type."""
    fields = []
    for field in msgspec.structs.fields(struct):
        default: Any = {"default": field.default, "default_factory": field.default_factory}
        fields.append((field.name, types.get(field.name, field.type), msgspec.field(**default)))
    name = f"Stored{struct.__name__}"
    return msgspec.defstruct(name, fields, array_like=True, tag=tag, forbid_unknown_fields=True)
