"""The backlog: requests that a batch has left unread, how fast they are worked off, and how that is reported.

A batch reads at most ``max-requests-per-batch``. After an outage, a job works the requests off batch by batch.
"""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

REPORT_SECONDS = 5.0

ProgressAfter = Callable[[int], list[str]]
"""The progress of the completed batches after a batch id as JSON, oldest first."""


class SourceProgress(msgspec.Struct, rename="camel"):
    """Offsets by topic and partition: the end of the log, and the end of the batch."""

    latest_offset: dict[str, dict[str, int]] | None = None
    end_offset: dict[str, dict[str, int]] | None = None

    @property
    def unread(self) -> int:
        """How many records were in the log that the batch did not read."""
        end = self.end_offset or {}
        return sum(
            offset - end.get(topic, {}).get(partition, 0)
            for topic, offsets in (self.latest_offset or {}).items()
            for partition, offset in offsets.items()
        )


class BatchSize(msgspec.Struct, rename="camel"):
    """How much a completed batch has read, from Spark's report. Durations are by phase, in ms."""

    batch_id: int
    duration_ms: dict[str, int]
    sources: list[SourceProgress] = []
    num_input_rows: int = 0

    @property
    def unread(self) -> int:
        """How many records were in the logs that the batch did not read."""
        return sum(source.unread for source in self.sources)

    @property
    def milliseconds(self) -> int:
        """How long the batch took; 0 if Spark did not measure it."""
        return self.duration_ms.get("triggerExecution", 0)


class Backlog(NamedTuple):
    """How many requests wait, and how many are read each second (0 if no batch was timed)."""

    requests: int
    rate: float

    @property
    def seconds(self) -> float:
        """The time to work it off at this rate, if nothing is appended meanwhile; 0 without a backlog."""
        return self.requests / self.rate if self.requests and self.rate else 0.0

    def __str__(self) -> str:
        remaining = f", about {self.seconds:,.0f} s remain" if self.seconds else ""
        return f"{self.requests:,} requests wait, {self.rate:,.0f} are read each second{remaining}"


def backlog_after(batches: Iterable[BatchSize]) -> Backlog:
    """The backlog after the last of these batches, and the rate of all of them."""
    requests = rows = milliseconds = 0
    for batch in batches:
        requests = batch.unread
        rows += batch.num_input_rows
        milliseconds += batch.milliseconds
    return Backlog(requests, rows * 1000 / milliseconds if milliseconds else 0.0)


class BacklogReport:
    """Reports a query's backlog every few seconds while there is one, and how much it was once it is worked off.

    ``clock`` counts seconds.
    """

    def __init__(
        self, read: ProgressAfter, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._progress_after = read
        self._report = report
        self._clock = clock
        self._last_batch = -1
        self._next_at = 0.0
        self._is_behind = False
        self._requests = 0
        self._milliseconds = 0

    def first(self) -> Backlog:
        """The backlog after the first batches; call it when there is one."""
        backlog = self._read()
        # Spark does not look for the end of the log before a batch that runs again: then the next batch is the first.
        self._next_at = self._clock() + (REPORT_SECONDS if self._is_behind else 0.0)
        return backlog

    def update(self) -> None:
        """Report the backlog if it is time to; call it often."""
        if self._clock() < self._next_at:
            return
        self._next_at = self._clock() + REPORT_SECONDS
        last_batch = self._last_batch
        backlog = self._read()
        if self._is_behind and self._last_batch > last_batch:
            self._report(f"working off a backlog: {backlog}")
        # It may also have come and gone since the last look, or before the first.
        elif self._requests and not self._is_behind:
            self._report(
                f"the backlog is worked off: {self._requests:,} requests in {self._milliseconds / 1000:,.1f} s"
            )
            self._requests = self._milliseconds = 0

    def _read(self) -> Backlog:
        """Read the progress since the last look, and count the batches of a backlog, its last one included."""
        batches = [msgspec.json.decode(text, type=BatchSize) for text in self._progress_after(self._last_batch)]
        for batch in batches:
            self._last_batch = batch.batch_id
            was_behind, self._is_behind = self._is_behind, batch.unread > 0
            if was_behind or self._is_behind:
                self._requests += batch.num_input_rows
                self._milliseconds += batch.milliseconds
        return backlog_after(batches)
