"""Decides when requests that have arrived start a batch. Pure: the caller passes the time."""

ENOUGH = 32
"""As many requests that can wait start a batch without waiting: each is late by what it takes for so many to arrive."""


class Collection:
    """The requests that have arrived since the last batch began. Not thread-safe.

    Those that can wait start a batch ``interval_seconds`` after the last one began, the others at once.
    ``seconds`` is a monotonic clock's time.
    """

    def __init__(self, interval_seconds: float) -> None:
        self._interval_seconds = interval_seconds
        self._interval_ends_at = float("-inf")
        self._since: float | None = None
        self._waiting = 0
        self._is_urgent = False

    def add(self, seconds: float, *, can_wait: bool) -> None:
        """Note a request."""
        if self._since is None:
            self._since = seconds
        self._waiting += 1
        self._is_urgent = self._is_urgent or not can_wait

    def take(self, seconds: float) -> None:
        """A batch begins that reads all of them, or the query has looked and found none."""
        if self._since is not None:
            self._interval_ends_at = seconds + self._interval_seconds
        self._since, self._waiting, self._is_urgent = None, 0, False

    @property
    def is_complete(self) -> bool:
        """Whether a batch should begin as soon as it may: nothing further needs to be seen of what arrives."""
        return self._is_urgent or self._waiting >= ENOUGH

    def due_at(self) -> float | None:
        """When the batch should begin; None while there is no request."""
        return self._since if self.is_complete else self.latest()

    def latest(self) -> float | None:
        """When the batch begins even if no CPU time is left; None while there is no request."""
        return None if self._since is None else max(self._since, self._interval_ends_at)
