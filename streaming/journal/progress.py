"""Reports how far the reading of a topic has come."""

import time
from collections.abc import Callable

REPORT_SECONDS = 0.5
"""How long a reading takes before it reports its progress, and how often it reports."""


class ReadingProgress:
    """Counts the records that were read, of ``total`` at most: that includes those before the time it reads from."""

    def __init__(self, total: int, report: Callable[[str], object], what: str = "records of the journal") -> None:
        self._total = total
        self._what = what
        self._report = report
        self._read = 0
        self._next = time.monotonic() + REPORT_SECONDS

    def add(self, count: int) -> None:
        """Note that so many more records were read."""
        self._read += count
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + REPORT_SECONDS
            self._report(f"read {self._read:,} of at most {self._total:,} {self._what}")
