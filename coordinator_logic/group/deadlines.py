"""Finds the timer of a group that is due first.

The timers are a dict in the order in which they were armed; of two timers with the same deadline, the one that was
armed first is due first.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from itertools import count

from coordinator_logic.group.timer import Timer


def earliest(timers: Mapping[str, Timer], started_at: int) -> tuple[str, Timer] | None:
    """The key and timer with the first deadline, given the coordinator's last start (ms since the epoch)."""
    first: str | None = None
    soonest = 0
    for key, timer in timers.items():
        # This loop runs for every group that a batch calls: only timers that the start postpones need the method.
        armed_at = timer.armed_at
        deadline = timer.deadline(started_at) if armed_at < started_at else armed_at + timer.timeout_ms
        if first is None or deadline < soonest:
            first, soonest = key, deadline
    return None if first is None else (first, timers[first])


class Deadlines:
    """The deadlines of a group during one step.

    It finds the same timer as :func:`earliest`, in a time that does not grow with the number of timers. Whoever arms a
    timer calls :meth:`add`. A timer may be cancelled without a call: the heap skips timers that are no longer armed.

    Args:
        timers: The group's timers, by key.
        started_at: The coordinator's last start, ms since the epoch.
    """

    __slots__ = ("_heap", "_order", "_started_at", "timers")

    def __init__(self, timers: Mapping[str, Timer], started_at: int) -> None:
        self.timers = timers
        self._started_at = started_at
        self._order = count()
        self._heap = [self._entry(key, timer) for key, timer in timers.items()]
        heapify(self._heap)

    def add(self, key: str, timer: Timer) -> None:
        """Add a timer that was armed."""
        heappush(self._heap, self._entry(key, timer))

    def earliest(self) -> tuple[str, Timer] | None:
        """The key and timer with the first deadline."""
        while self._heap:
            _, _, key, timer = self._heap[0]
            if self.timers.get(key) is timer:
                return key, timer
            heappop(self._heap)
        return None

    def _entry(self, key: str, timer: Timer) -> tuple[int, int, str, Timer]:
        return timer.deadline(self._started_at), next(self._order), key, timer
