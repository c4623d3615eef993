"""The difference between the brokers' clocks and the driver's, as far as the batches prove it.

A record that a batch reads was appended before the batch was planned, and after the one before it was. So its append
time is between the two, by the driver's clock, unless the clocks differ.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from streaming.job.group_types import GROUP_TYPES

MAY_BE_PARKED = frozenset[str]().union(*(kind.parked_apis for kind in GROUP_TYPES.values()))
"""The APIs whose requests may be answered by a later batch than the one that reads them."""

MARGIN_MS = 250
"""How long planning a batch and replicating a record may take; it proves no difference."""


LARGEST_SKEW_SECONDS = 5.0
"""Beyond it the job warns, and is not ready. Half of the shortest session that clients have by default: a member that
stops is then expelled visibly late, and one that goes on never is."""


class SkewReport:
    """Reports when the clocks begin to differ by more than :data:`LARGEST_SKEW_SECONDS`, and when they agree again."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._differs = False

    def update(self, skew_seconds: float) -> None:
        """Call it often, with the newest difference: positive if the brokers' clocks are ahead."""
        differed, self._differs = self._differs, abs(skew_seconds) > LARGEST_SKEW_SECONDS
        if self._differs and not differed:
            side = "ahead of" if skew_seconds > 0 else "behind"
            self._report(
                f"warning: the brokers' clocks are {abs(skew_seconds):,.1f} s {side} the driver's; no member that "
                "sends heartbeats is expelled, but one that stops may be expelled late: check NTP on all of them"
            )
        elif differed and not self._differs:
            self._report("the clocks of the brokers and the driver agree again")


class ClockComparison:
    """Compares append times with the times of the batches, given in order."""

    def __init__(self) -> None:
        self._previous_id = -1
        self._previous_time: datetime | None = None
        self._left_unread = 0

    def skew_ms(self, batch_id: int, planned_at: datetime | None, waits: Sequence[int], unread: int) -> int | None:
        """By how much the brokers' clocks are ahead of the driver's at least (ms), negative if behind.

        0 if the batch proves no difference, None if it has no requests. ``waits`` are the times from the append of each
        request to its batch (ms), ``unread`` is how many requests the batch has left in the log.
        """
        follows = batch_id == self._previous_id + 1 and not self._left_unread
        longest = None
        if follows and planned_at is not None and self._previous_time is not None:
            longest = (planned_at - self._previous_time) // timedelta(milliseconds=1)
        self._previous_id, self._previous_time, self._left_unread = batch_id, planned_at, unread
        if not waits:
            return None
        if min(waits) < -MARGIN_MS:
            return -min(waits)
        behind = 0 if longest is None else max(waits) - longest
        return -behind if behind > MARGIN_MS else 0
