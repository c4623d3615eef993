"""Follows a query's batches on a thread, and appends a wake event whenever a group is due."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
from pyspark.sql.streaming.query import StreamingQuery

from streaming.job.monitoring.metrics import OBSERVATION, Progress
from streaming.job.spark_internals.java_objects import JVM_IS_GONE, JavaFailure, progress_after
from streaming.job.wake_events.producer import WakeEvents
from streaming.job.wake_events.schedule import CompletedBatch, WakeSchedule

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25
"""How long after its batch a due time may become known. A group that is due at once is called late by this, and by the
interval of the batches; :func:`coordinator_logic.timing.sessions.late_answer_ms` leaves room for both."""

FAILURE_PAUSE_SECONDS = 5.0
END_LIMIT_SECONDS = 5.0


class _WakeThread(threading.Thread):
    """Reads the query's progress, and appends wake events. An exception is logged, and the thread goes on."""

    def __init__(
        self,
        wakes: WakeEvents,
        query: StreamingQuery,
        interval_seconds: float,
        on_batch: Callable[[Progress], None],
        *,
        is_new: bool,
    ) -> None:
        super().__init__(name="wake-events", daemon=True)
        self._on_batch = on_batch
        self._wakes = wakes
        self._query = query
        self._schedule = WakeSchedule(time.monotonic(), interval_seconds, is_new=is_new)
        self._last_batch = -1
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the thread; one that hangs in the JVM ends with the process."""
        self._stopped.set()
        self.join(END_LIMIT_SECONDS)

    def run(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            try:
                pause = self._look()
            except JVM_IS_GONE as failure:
                if not isinstance(failure, JavaFailure):
                    # The job itself reports it and ends.
                    log.debug("the JVM has ended")
                    return
                pause = self._failed()
            except Exception:
                pause = self._failed()

    def _failed(self) -> float:
        """Log an exception; returns the time until the next look, in seconds."""
        log.exception("wake events cannot follow the query")
        self._schedule.forget(time.monotonic())
        return FAILURE_PAUSE_SECONDS

    def _look(self) -> float:
        """Do what is to be done now; returns the time until the next look, in seconds."""
        schedule = self._schedule
        for text in progress_after(self._query, self._last_batch):
            progress = msgspec.json.decode(text, type=Progress)
            self._last_batch = progress.batch_id
            schedule.note_batch(_completed(progress), time.monotonic())
            self._on_batch(progress)
        now, seconds = time.time_ns() // 1_000_000, time.monotonic()
        for place in self._wakes.deliveries():
            if place is None:
                schedule.note_failed(seconds)
            else:
                schedule.note_appended(*place)
        if schedule.is_needed(now, seconds):
            schedule.note_asked(seconds)
            self._wakes.append()
            return POLL_SECONDS
        until_due = schedule.seconds_until_due(now)
        # A group that is due already waits for a batch.
        return POLL_SECONDS if until_due is None or until_due <= 0 else min(POLL_SECONDS, until_due)


def _completed(progress: Progress) -> CompletedBatch:
    due_times: list[int] | None = None
    if OBSERVATION in progress.observed_metrics:
        due_times = [due for totals in progress.totals() for due in totals.due_times]
    return CompletedBatch(progress.batch_id, progress.earliest_time, due_times, progress.read_until)


@contextmanager
def waking_due_groups(
    wakes: WakeEvents,
    query: StreamingQuery,
    batch_interval_ms: int,
    on_batch: Callable[[Progress], None],
    *,
    is_new: bool,
) -> Iterator[Callable[[], bool]]:
    """Keep the deadlines of a query's groups within the block; yields whether the thread runs.

    ``batch_interval_ms`` is the least time between the starts of two batches; ``is_new``: whether the query's
    checkpoint has no batch. ``on_batch`` is called with each completed batch, on the thread.
    """
    thread = _WakeThread(wakes, query, batch_interval_ms / 1000, on_batch, is_new=is_new)
    thread.start()
    try:
        yield thread.is_alive
    finally:
        thread.stop()
