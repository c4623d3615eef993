"""Counts objects that nothing refers to any more, and that were not freed."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Uuid


@contextmanager
def leaked_uuids() -> Iterator[Callable[[], int]]:
    """Count the ``Uuid`` objects that were created since the block began and that still exist.

    Every description of a topic by confluent-kafka 2.16.1 leaves one behind.
    """
    before = _uuids()
    yield lambda: _uuids() - before


def _uuids() -> int:
    gc.collect()
    return sum(isinstance(found, Uuid) for found in gc.get_objects())
