"""Watches, on a thread, what is used while a query runs, and reports each slow batch with its cause."""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from streaming.job.monitoring.metrics import Metrics, Progress
from streaming.job.monitoring.slow_batches.causes import (
    CAUSES,
    GROUPS,
    STATE_COMMIT,
    WHOLE_BATCH,
    WORK,
    Batch,
    Finding,
    SlowBatches,
)
from streaming.job.monitoring.slow_batches.java_times import JavaTimes
from streaming.job.monitoring.slow_batches.machine import Machine
from streaming.job.monitoring.slow_batches.usage import Sample, Usage, Used
from streaming.job.spark_internals.java_objects import JVM_IS_GONE, JavaFailure

log = logging.getLogger(__name__)

SAMPLE_SECONDS = 0.25
IDLE_SAMPLE_SECONDS = 2.0
"""When there has been no batch for :data:`IDLE_AFTER_SECONDS`."""
IDLE_AFTER_SECONDS = 5.0

LINE_SECONDS = 10.0
"""At most one line in this time, about the slowest batch since the one before."""

NOT_REPORTED = ("start", "usual")
"""Causes that are counted only: nothing has changed."""

CLOCK_LEAP_SECONDS = 60.0
"""A batch that ends so much later than the newest sample ran before the clock went back."""

END_LIMIT_SECONDS = 5.0


class Lines:
    """Chooses the slow batches that get a line. Not thread-safe. ``seconds`` is a monotonic clock's time."""

    def __init__(self) -> None:
        self._slowest: Finding | None = None
        self._others = 0
        self._next_at = float("-inf")

    def add(self, finding: Finding) -> None:
        """Add a slow batch, in the order in which the batches ran."""
        if finding.cause in NOT_REPORTED:
            return
        if self._slowest is None:
            self._slowest = finding
            return
        self._others += 1
        self._slowest = max(self._slowest, finding, key=lambda each: each.batch.milliseconds)

    def due(self, seconds: float) -> str | None:
        """The line that is due now, if there is one."""
        if self._slowest is None or seconds < self._next_at:
            return None
        line = str(self._slowest)
        if self._others:
            line += f"; {self._others} more slow batches since the last such line"
        self._slowest, self._others, self._next_at = None, 0, seconds + LINE_SECONDS
        return line


class SlowBatchRecorder(threading.Thread):
    """Samples what is used, and judges the batches that it is told of. An exception is logged once, and ends it.

    It is not needed for anything else: a job without it is healthy.
    """

    def __init__(self, read: Callable[[], Callable[[], Used]], count: Callable[[Finding], None]) -> None:
        super().__init__(name="slow-batches", daemon=True)
        self._make_reader = read
        self._count = count
        self._told: deque[Progress] = deque(maxlen=1_000)
        self._usage = Usage()
        self._slow = SlowBatches(os.cpu_count() or 1)
        self._lines = Lines()
        self._last_batch_at = time.monotonic()
        self._stopped = threading.Event()

    def note(self, progress: Progress) -> None:
        """Note a completed batch, in their order. Any thread may call it; it does not wait."""
        self._told.append(progress)

    def stop(self) -> None:
        """End the thread; one that hangs in the JVM ends with the process."""
        self._stopped.set()
        self.join(END_LIMIT_SECONDS)

    def run(self) -> None:
        try:
            read = self._make_reader()
            while not self._stopped.wait(self._pause()):
                self._usage.add(Sample(time.time(), read()))
                self._judge()
        except Exception as failure:
            if isinstance(failure, JVM_IS_GONE) and not isinstance(failure, JavaFailure):
                # The job itself reports it and ends.
                log.debug("the JVM has ended")
                return
            log.exception("slow batches are not recorded any more")

    def _pause(self) -> float:
        is_idle = time.monotonic() - self._last_batch_at > IDLE_AFTER_SECONDS
        return IDLE_SAMPLE_SECONDS if is_idle else SAMPLE_SECONDS

    def _judge(self) -> None:
        """Judge the batches that had ended by the newest sample."""
        while self._told:
            batch = completed_batch(self._told[0])
            if batch is not None and 0 < batch.ended - self._usage.until < CLOCK_LEAP_SECONDS:
                break
            self._told.popleft()
            self._last_batch_at = time.monotonic()
            if batch is None:
                continue
            used = self._usage.between(batch.began, batch.ended)
            finding = self._slow.judge(batch._replace(used=used))
            if finding is not None:
                self._count(finding)
                self._lines.add(finding)
        line = self._lines.due(time.monotonic())
        if line is not None:
            log.warning(line)


def completed_batch(progress: Progress) -> Batch | None:
    """The batch of Spark's report, without what was used; None if the report has no times."""
    milliseconds = progress.milliseconds
    if progress.timestamp is None or not milliseconds:
        return None
    began = progress.timestamp.timestamp()
    return Batch(progress.batch_id, began, began + milliseconds / 1000, progress.num_input_rows, _phases(progress), {})


def _phases(progress: Progress) -> dict[str, int]:
    """Spark's phases, of which the work itself is divided: what the groups take, what the commit of their states
    takes, and the rest. Tasks that run at the same time may together take longer than the batch; then it is not."""
    phases = {name: ms for name, ms in progress.duration_ms.items() if name != WHOLE_BATCH}
    groups = sum(each.all_updates_time_ms + each.all_removals_time_ms for each in progress.state_operators)
    commit = sum(each.commit_time_ms for each in progress.state_operators)
    rest = phases.get(WORK, 0) - groups - commit
    return phases | {GROUPS: groups, STATE_COMMIT: commit, WORK: rest} if rest >= 0 else phases


@contextmanager
def recording_slow_batches(spark: SparkSession, metrics: Metrics) -> Iterator[Callable[[Progress], None]]:
    """Record the slow batches of a query while the block runs; yields what is to be told of each completed one."""
    for cause in CAUSES:
        metrics.slow_batches.labels(cause)

    def reader() -> Callable[[], Used]:
        machine, java = Machine(), JavaTimes(spark)
        return lambda: {**machine.used(), **java.used()}

    recorder = SlowBatchRecorder(reader, lambda finding: metrics.slow_batches.labels(finding.cause).inc())
    recorder.start()
    try:
        yield recorder.note
    finally:
        recorder.stop()
