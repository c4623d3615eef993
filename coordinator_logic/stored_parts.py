"""Parts of a snapshot that stay encoded until a request needs them: most requests are heartbeats of one member."""

from collections.abc import Iterator, MutableMapping
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class UnreadablePart(ValueError):
    """The bytes of a part of a snapshot are not what they should be. Every use of the part raises it again."""


class StoredItems(MutableMapping[str, T], Generic[T]):
    """Items of a snapshot by key, each decoded when it is first used. Every access can raise :class:`UnreadablePart`.

    Args:
        items: The items in MessagePack; the mapping becomes their owner.
        decoder: Decodes one item.
        what: What the items are, for the exception.
    """

    __slots__ = ("_decoder", "_items", "_what")

    def __init__(self, items: dict[str, msgspec.Raw | T], decoder: "msgspec.msgpack.Decoder[T]", what: str) -> None:
        self._items = items
        self._decoder = decoder
        self._what = what

    @property
    def for_snapshot(self) -> dict[str, msgspec.Raw | T]:
        """A value that MessagePack can encode: the original bytes of items that nobody has used."""
        return self._items

    def __getitem__(self, key: str) -> T:
        item = self._items[key]
        if isinstance(item, msgspec.Raw):
            try:
                item = self._items[key] = self._decoder.decode(item)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise UnreadablePart(f"its {self._what} are damaged: {error}") from error
        return item

    def __setitem__(self, key: str, item: T) -> None:
        self._items[key] = item

    def __delitem__(self, key: str) -> None:
        del self._items[key]

    def __contains__(self, key: object) -> bool:
        # The one of MutableMapping would decode the item.
        return key in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)
