"""Decides when a wake event is needed. Pure: the caller passes the time.

The schedule errs on one side only. A wake event too many makes Spark run a batch that finds nothing to do. So each due
time that a batch has reported counts until a batch has run that must have called the group, even if a request has
postponed it meanwhile.

What a group asked for before this process began, or in a batch whose report was lost, is not known. Then wake events
come regularly, and less often as time goes by: a start gives the members of every group a full session, so a session
that ends is noticed late by a :data:`LATE_PART` of it. Groups whose members are alive send requests, and are known
again from the first one on.
"""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

UNREAD_SECONDS = 5.0
"""A wake event that no batch has read after this time, and two intervals of the batches, is repeated. While its code is
not compiled a batch takes seconds, and a wake event that comes during it costs another batch."""

FAILED_SECONDS = 1.0
"""One that could not be appended is repeated after this time."""

FIRST_REGULAR_SECONDS = 1.0
LATE_PART = 10
LAST_REGULAR_SECONDS = 600.0
"""The interval of the regular wake events: at first, as a part of the time since they began, and at last. Kafka's
brokers look for expired offsets as often as the last one."""


class CompletedBatch(NamedTuple):
    """What the schedule needs to know of a completed batch.

    ``earliest_time``: the batch's time is not earlier (ms since the epoch); None if unknown. ``due_times`` of the
    groups that the batch has called; None if they were not reported. ``read_until`` is the end of the batch in each
    partition of the requests.
    """

    batch_id: int
    earliest_time: int | None
    due_times: Sequence[int] | None
    read_until: Mapping[int, int]


class WakeSchedule:
    """When the next wake event is needed. Not thread-safe.

    In all methods, ``seconds`` is a monotonic clock's time, and ``now`` the driver's, from which Spark takes the times
    of the batches (ms since the epoch).

    Args:
        seconds: The time now.
        interval_seconds: The least time between the starts of two batches.
        is_new: Whether no group exists, and batch 0 comes first.
    """

    def __init__(self, seconds: float, interval_seconds: float, *, is_new: bool) -> None:
        self._repeat_after = UNREAD_SECONDS + 2 * interval_seconds
        self._due: list[int] = []
        self._known: set[int] = set()
        self._last_batch: int | None = -1 if is_new else None
        self._read_until: Mapping[int, int] = {}
        self._repeat_at: float | None = None
        self._place: tuple[int, int] | None = None
        self._unknown_since: float | None = None
        self._regular_at = 0.0
        if not is_new:
            self.forget(seconds)

    def forget(self, seconds: float) -> None:
        """Count as unknown what groups have asked for until now."""
        self._unknown_since = seconds
        self._regular_at = seconds + FIRST_REGULAR_SECONDS

    def note_batch(self, batch: CompletedBatch, seconds: float) -> None:
        """Note a completed batch; call it for each, in order."""
        is_next = self._last_batch is None or batch.batch_id == self._last_batch + 1
        if not is_next or batch.due_times is None:
            self.forget(seconds)
        self._last_batch = batch.batch_id
        if batch.earliest_time is not None:
            while self._due and self._due[0] <= batch.earliest_time:
                self._known.remove(heappop(self._due))
            self._delay_regular(seconds)
        for due in batch.due_times or ():
            if due not in self._known:
                self._known.add(due)
                heappush(self._due, due)
        self._read_until = batch.read_until
        self._resolve()

    def is_needed(self, now: int, seconds: float) -> bool:
        """Whether to append a wake event now. Call :meth:`note_asked` when you do."""
        if self._repeat_at is not None and seconds < self._repeat_at:
            return False
        is_due = bool(self._due) and self._due[0] <= now
        return is_due or (self._unknown_since is not None and seconds >= self._regular_at)

    def seconds_until_due(self, now: int) -> float | None:
        """The time until the next group is due, negative if one is; None if none is known."""
        return (self._due[0] - now) / 1000 if self._due else None

    def note_asked(self, seconds: float) -> None:
        """Note that a wake event is being appended."""
        self._repeat_at, self._place = seconds + self._repeat_after, None

    def note_appended(self, partition: int, offset: int) -> None:
        """Note where the wake event has been appended; the schedule waits until a batch has read it."""
        self._place = partition, offset
        self._resolve()

    def note_failed(self, seconds: float) -> None:
        """Note that a wake event could not be appended."""
        self._repeat_at, self._place = seconds + FAILED_SECONDS, None

    def _resolve(self) -> None:
        if self._place is not None:
            partition, offset = self._place
            if self._read_until.get(partition, 0) > offset:
                self._repeat_at = self._place = None

    def _delay_regular(self, seconds: float) -> None:
        if self._unknown_since is not None:
            part = (seconds - self._unknown_since) / LATE_PART
            self._regular_at = seconds + min(max(part, FIRST_REGULAR_SECONDS), LAST_REGULAR_SECONDS)
