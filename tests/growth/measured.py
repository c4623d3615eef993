"""How the processor time of a piece of work grows with its size.

A test measures no absolute time where it can compare two. One bound is what others feel: no piece of work holds a
batch, or the gateway's event loop, for 50 ms, or on a slow machine for as long as a fixed piece of work takes there
twelve times. It is processor time of this process, the least of several runs, so that the machine's other work does not
count.
"""

import time
from collections.abc import Callable

from tests.support.garbage import without_collections

__all__ = ["TIMES", "check_growth", "longest_piece_seconds", "processor_seconds_of"]

TIMES = 4
"""How many times as large the larger work is."""
MOST_TIMES = 9.0
"""Quadratic work takes sixteen times as long, linear work four times."""
LONGEST_PIECE_SECONDS = 0.05
LONGEST_PIECE_TIMES = 12
FIXED_WORK_RUNS = 5
TOO_SHORT_SECONDS = 0.004
"""Work that takes less is not compared: its fixed costs count."""
MOST_RUNS = 8


def processor_seconds_of(work: Callable[[], object]) -> float:
    """The processor time of a call."""
    with without_collections():
        began = time.process_time()
        work()
        return time.process_time() - began


def longest_piece_seconds() -> float:
    """For how long a piece of work may hold others: 50 ms, or longer on a machine that is slow now."""
    fixed_work = min(processor_seconds_of(_fixed_work) for _ in range(FIXED_WORK_RUNS))
    return max(LONGEST_PIECE_SECONDS, LONGEST_PIECE_TIMES * fixed_work)


def _fixed_work() -> dict[str, int]:
    """Interpreted code and new objects, as in a step."""
    lengths = {}
    for number in range(40_000):
        key = str(number)
        lengths[key] = len(key)
    return lengths


def check_growth(measure: Callable[[int], float], size: int) -> str | None:
    """Measure work of a size, and of four times the size; return what is wrong with it.

    measure: does the work of a size, and returns the seconds of its longest piece.
    """
    small = large = float("inf")
    for _ in range(MOST_RUNS):
        large = min(large, measure(TIMES * size))
        if large <= TOO_SHORT_SECONDS:
            return None
        small = min(small, measure(size))
        if large <= MOST_TIMES * small and (large <= LONGEST_PIECE_SECONDS or large <= longest_piece_seconds()):
            return None
    return f"{size}: {small * 1000:.1f} ms, {TIMES * size}: {large * 1000:.1f} ms"
