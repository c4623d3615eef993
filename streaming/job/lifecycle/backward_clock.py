"""Notices that the host's clock has been set back."""

import time
from collections.abc import Callable

LEAST_SECONDS = 2.0
"""A step by less delays a batch by as much, which is shorter than a new start of the query."""


class BackwardClock:
    """Compares a wall clock with the monotonic one; both are in seconds."""

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._last = self._difference()
        self.seconds_back = 0.0
        """The step that was noticed, 0 before."""

    def has_gone_back(self) -> bool:
        """Whether the wall clock has been set back by :data:`LEAST_SECONDS` or more since the last call."""
        before, self._last = self._last, self._difference()
        if before - self._last < LEAST_SECONDS:
            return False
        self.seconds_back = before - self._last
        return True

    def _difference(self) -> float:
        return self._wall() - self._monotonic()
