"""A list whose items are made when they are needed, so that a long one is never held, and never freed at once."""

from collections.abc import Callable, Collection, Iterator
from typing import Any, Generic, TypeVar

__all__ = ["LazyList"]

ItemT = TypeVar("ItemT")


class LazyList(Generic[ItemT]):
    """The results of ``make`` for each item of ``source``, made anew in each iteration.

    A message or a response may have one in place of a list or a tuple: who writes it iterates over it once.
    """

    __slots__ = ("_make", "_source")

    def __init__(self, source: Collection[Any], make: Callable[[Any], ItemT]) -> None:
        self._source = source
        self._make = make

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[ItemT]:
        return map(self._make, self._source)
