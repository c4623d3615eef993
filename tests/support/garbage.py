"""Python without its collector of cyclic garbage, for a block."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_collections"]


@contextmanager
def without_collections() -> Iterator[None]:
    """Within the block, memory is freed only where no cycle of references keeps it, and no collection takes time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
