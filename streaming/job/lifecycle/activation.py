"""How this job becomes the active one of its topics, and hands over to the next."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streaming.contract.errors import CannotRun
from streaming.job.checkpoints.checkpoint import Checkpoint
from streaming.job.checkpoints.location import checkpoint_location
from streaming.job.lifecycle.job_session import JobSession, Report
from streaming.job.lifecycle.query_start import DEFAULT_STATE_PARTITIONS, configure_state, group_settings
from streaming.job.query import warm_up_query
from streaming.job.state_stores import DEFAULT_STATE_STORE

FENCED_LOCK_SECONDS = 1.0
"""How long a job waits for the checkpoint's lock of a job that it has overtaken: a dead one's JVM may still end."""


def become_active(session: JobSession, report: Report) -> None:
    """Make this job the active one of its topics; with the option ``standby``, wait while another one is.

    Raises:
        CannotRun: another job is active, or uses the checkpoint.
    """
    rival = session.candidate
    starts = Checkpoint(session.spark, checkpoint_location(session.options)).starts()
    least_epoch = max((start.epoch for start in starts), default=0) + 1
    has_taken = False
    while not has_taken:
        if session.options.standby and not rival.is_free():
            with _warming_up(session):
                rival.wait_until_free(report)
        elif not session.options.standby:
            rival.require_free()
        has_taken = rival.take(least_epoch)
    if session.lock is None:
        return
    if rival.overtaken is None:
        session.lock.acquire()
        return
    # That job is fenced: whether it hangs or is dead, Spark refuses its next batch. So this one need not wait for it.
    with suppress(CannotRun):
        session.lock.acquire(FENCED_LOCK_SECONDS)


def hand_over(session: JobSession) -> None:
    """Let a job that stands by continue now, while this one's JVM still has to end."""
    if session.lock is not None:
        session.lock.release()
    session.candidate.release()


@contextmanager
def _warming_up(session: JobSession) -> Iterator[None]:
    """Run a query of the coordinator's shape within the block, so that the coordinator's own is fast from its start."""
    spark, options = session.spark, session.options
    layout = Checkpoint(spark, checkpoint_location(options)).layout()
    state_partitions = layout.state_partitions if layout else options.state_partitions or DEFAULT_STATE_PARTITIONS
    state_store = (layout.state_store if layout else options.state_store) or DEFAULT_STATE_STORE
    configure_state(spark, state_partitions, state_store)
    settings = group_settings(options, session.watch.found.partition_counts(options.topics), ())
    with tempfile.TemporaryDirectory(prefix="group-coordinator-warm-up-") as folder:
        query = warm_up_query(spark, options, settings, state_partitions, Path(folder)).start()
        try:
            yield
        finally:
            query.stop()
