"""A budget of CPU time: batches may follow each other while there is credit. Pure: the caller passes the times."""

BURST_SECONDS = 5.0
"""Seconds of the budget that an idle job saves for a burst."""

DEBT_SECONDS = 1.0
"""Seconds of the budget that a job owes at most: batches that the interval began may have used far more."""

FIRST_SECONDS = 30.0
"""Seconds of the budget that a job has at its start, while Java compiles: first answers count as much as later ones."""


class Credit:
    """The CPU time that a job may use, saved at ``cores`` seconds a second. Not thread-safe.

    ``seconds`` is a monotonic clock's time, ``used`` the CPU time that the job has used until then (s).
    """

    def __init__(self, cores: float, seconds: float, used: float) -> None:
        self._cores = cores
        self._seconds = seconds
        self._used = used
        self._left = cores * FIRST_SECONDS

    def note(self, seconds: float, used: float) -> None:
        """Note what has been used until now."""
        most = max(self._left, self._cores * BURST_SECONDS)
        left = min(self._left + self._cores * (seconds - self._seconds), most) - (used - self._used)
        self._left = max(left, -self._cores * DEBT_SECONDS)
        self._seconds, self._used = seconds, used

    def free_at(self) -> float:
        """When there is credit again, if nothing is used until then; never without a budget."""
        if not self._cores:
            return float("inf")
        return self._seconds - min(self._left, 0.0) / self._cores
