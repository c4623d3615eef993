"""The committed offsets of a group at some times between its first and its last entry."""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator_logic.records import JournalEntry
from streaming.explain.live.positions import Positions
from streaming.journal.fold import Observer

__all__ = ["MAX_SAMPLES", "Committed", "CommittedOverTime"]

MAX_SAMPLES = 32

FIRST_WIDTH_MS = 1_000


class Committed(NamedTuple):
    """The committed offsets at a time, ms since the epoch, by topic and partition."""

    time: int
    offsets: Mapping[tuple[str, int], int]


class CommittedOverTime(Observer):
    """Keeps the offsets of one group at regular times.

    How long the time is shows only at its end. So whenever there are too many samples, every other one is dropped, and
    the pause between them is doubled: there are always between half of :data:`MAX_SAMPLES` and all of them, unless the
    time is short.
    """

    def __init__(self) -> None:
        self._positions = Positions()
        self._samples: list[Committed] = []
        self._width = FIRST_WIDTH_MS
        self._next: int | None = None
        self._last = 0

    def on_entry(self, entry: JournalEntry) -> None:
        """Add the next entry."""
        if self._next is None:
            self._next = entry.timestamp + self._width
        while self._next < entry.timestamp:
            self._samples.append(Committed(self._next, self._positions.committed()))
            if len(self._samples) == MAX_SAMPLES:
                self._samples = self._samples[1::2]
                self._width *= 2
            self._next = self._samples[-1].time + self._width
        self._positions.note(entry.record)
        self._last = max(self._last, entry.timestamp)

    def samples(self) -> list[Committed]:
        """The samples, by time; the last one is that of the last entry. None before the first entry."""
        if self._next is None:
            return []
        return [*self._samples, Committed(self._last, self._positions.committed())]
