"""Blocks without Python's collector of cyclic garbage, and objects that it does not free."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["leaked", "without_collections"]


@contextmanager
def without_collections() -> Iterator[None]:
    """Within the block, memory is freed only where no cycle of references keeps it, and no collection takes time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def leaked(kind: type) -> Iterator[Callable[[], int]]:
    """Count the objects of ``kind`` that were created since the block began and that still exist."""
    before = _count(kind)
    yield lambda: _count(kind) - before


def _count(kind: type) -> int:
    gc.collect()
    return sum(isinstance(found, kind) for found in gc.get_objects())
