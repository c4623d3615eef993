"""How this job becomes the active one of its topics, and hands over to the next."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from streaming.contract.errors import BrokersFailed, CannotRun
from streaming.job.checkpoints.lock import CheckpointLock
from streaming.job.lifecycle.job_session import JobSession, Report
from streaming.job.lifecycle.query_start import configure_state, group_settings
from streaming.job.query import warm_up_query
from streaming.job.session import NO_DATA_BATCHES, STREAMING
from streaming.job.spark_internals.java_objects import JVM_IS_GONE
from streaming.job.state_stores import DEFAULT_STATE_PARTITIONS, DEFAULT_STATE_STORE

WARM_UP_SECONDS = 60.0
"""How long a job that stands by runs batches without requests. Until then, Java has compiled most of their code."""

RETRY_SECONDS = 1.0

FENCED_LOCK_SECONDS = 1.0
"""How long a job waits for the checkpoint's lock of a job that it has overtaken: a dead one's JVM may still end."""

COMMAND_POLL_SECONDS = 0.1
"""How often a job looks whether a command has ended."""


def become_active(session: JobSession, report: Report) -> None:
    """Make this job the active one of its topics; with the option ``standby``, wait while another one is.

    Raises:
        CannotRun: another job is active, or uses the checkpoint.
    """
    rival, checkpoint = session.candidate, session.checkpoint
    # Reads them once: the start of the query then reads those alone that are newer.
    checkpoint.starts()
    has_taken = False
    while not has_taken:
        if session.options.standby and not rival.is_free():
            session.metrics.note_standby(True)
            with _warming_up(session) as warm_up:
                rival.wait_until_free(report, warm_up.end_when_warm)
            session.metrics.note_standby(False)
        elif not session.options.standby:
            rival.require_free()
        least_epoch = max((start.epoch for start in checkpoint.starts()), default=0) + 1
        try:
            has_taken = rival.take(least_epoch)
        except BrokersFailed as failure:
            if not session.options.standby:
                raise
            report(f"standby: {failure}")
            time.sleep(RETRY_SECONDS)
    if session.lock is None:
        return
    keep_commands_away(session.lock, lambda: rival.failure, report)
    if rival.overtaken is None:
        session.lock.acquire()
        return
    # That job is fenced: whether it hangs or is dead, Spark refuses its next batch. So this one need not wait for it.
    with suppress(CannotRun):
        session.lock.acquire(FENCED_LOCK_SECONDS)


def keep_commands_away(lock: CheckpointLock, why_lost: Callable[[], str | None], report: Report) -> None:
    """Wait until no command holds the checkpoint, and let none begin until this job has stopped.

    Only this keeps commands away from a job that goes on without the lock of the one that it has overtaken.
    ``why_lost`` gives the reason why this job is no longer the active one, None while it is.

    Raises:
        CannotRun: the checkpoint was moved away, or another job has become the active one meanwhile.
    """
    if not lock.share():
        report("waiting for the end of a command that changes the checkpoint")
    while not lock.share():
        if failure := why_lost():
            raise CannotRun(failure)
        time.sleep(COMMAND_POLL_SECONDS)
    lock.require_in_place()


def hand_over(session: JobSession) -> None:
    """Let a job that stands by continue now, while this one's JVM still has to end."""
    if session.lock is not None:
        session.lock.release()
    session.candidate.release()


class _WarmUp:
    """Runs a query of the coordinator's shape: batch after batch for a minute, and from then on only for requests."""

    def __init__(self, session: JobSession, state_partitions: int) -> None:
        settings = group_settings(session.options, session.watch.found.partition_counts(session.options.topics), ())
        self._spark = session.spark
        assert session.scratch is not None
        checkpoint = Path(tempfile.mkdtemp(prefix="warm-up-", dir=session.scratch))
        self._writer = warm_up_query(session.spark, session.options, settings, state_partitions, checkpoint)
        self._warm_at: float | None = time.monotonic() + WARM_UP_SECONDS
        self._query = self._start(no_data_batches=True)

    def end_when_warm(self) -> None:
        """Let the query be idle while no requests come, if it has run for long enough. Call it often."""
        if self._warm_at is not None and time.monotonic() >= self._warm_at:
            self._warm_at = None
            self._query.stop()
            self._query = self._start(no_data_batches=False)

    def stop(self) -> None:
        self._query.stop()

    def _start(self, *, no_data_batches: bool) -> StreamingQuery:
        # A query keeps the settings of its start; the coordinator's needs the session's own.
        self._spark.conf.set(NO_DATA_BATCHES, no_data_batches)
        try:
            return self._writer.start()
        finally:
            self._spark.conf.set(NO_DATA_BATCHES, STREAMING[NO_DATA_BATCHES])


@contextmanager
def _warming_up(session: JobSession) -> Iterator[_WarmUp]:
    """Run a query of the coordinator's shape within the block, so that the coordinator's own is fast from its start.

    It ends after the block, on a thread: the coordinator's query need not wait for it.
    """
    spark, options = session.spark, session.options
    layout = session.checkpoint.layout()
    state_partitions = layout.state_partitions if layout else options.state_partitions or DEFAULT_STATE_PARTITIONS
    state_store = (layout.state_store if layout else options.state_store) or DEFAULT_STATE_STORE
    configure_state(spark, state_partitions, state_store)
    warm_up = _WarmUp(session, state_partitions)
    try:
        yield warm_up
    finally:
        threading.Thread(target=_end, args=(warm_up,), name="end-of-warm-up").start()


def _end(warm_up: _WarmUp) -> None:
    # If the job ends meanwhile, so does its JVM.
    with suppress(*JVM_IS_GONE):
        warm_up.stop()
