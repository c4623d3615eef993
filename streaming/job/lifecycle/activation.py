"""How this job becomes the active one of its topics, and hands over to the next."""

import time
from collections.abc import Callable
from contextlib import suppress

from streaming.contract.errors import BrokersFailed, CannotRun
from streaming.job.checkpoints.lock import CheckpointLock
from streaming.job.lifecycle.job_session import JobSession, Report
from streaming.job.lifecycle.phases import TAKE_OVER
from streaming.job.lifecycle.warm_up import warming_up
from streaming.job.spark_internals.own_jvm import use_idle_processor_time

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
    candidate, checkpoint = session.candidate, session.checkpoint
    # Reads them once: the start of the query then reads those alone that are newer.
    checkpoint.starts()
    is_active = False
    while not is_active:
        if session.options.standby and not candidate.is_free():
            session.metrics.note_standby(True)
            with warming_up(session) as warm_up:
                candidate.wait_until_free(report, warm_up.end_when_warm)
                session.phases.begin(TAKE_OVER)
            session.metrics.note_standby(False)
        elif not session.options.standby:
            candidate.require_free()
        least_epoch = max((start.epoch for start in checkpoint.starts()), default=0) + 1
        try:
            is_active = candidate.become_active(least_epoch)
        except BrokersFailed as failure:
            if not session.options.standby:
                raise
            report(f"standby: {failure}")
            time.sleep(RETRY_SECONDS)
    session.phases.end("active")
    if session.lock is not None:
        _acquire_lock(session, session.lock, report)
        session.phases.end("checkpoint locked")


def _acquire_lock(session: JobSession, lock: CheckpointLock, report: Report) -> None:
    """Acquire the checkpoint's lock. Raises CannotRun."""
    candidate = session.candidate
    keep_commands_away(lock, lambda: candidate.failure, report)
    if candidate.overtaken is None:
        lock.acquire()
        return
    # That job is fenced: whether it hangs or is dead, Spark refuses its next batch. So this one need not wait for it.
    with suppress(CannotRun):
        lock.acquire(FENCED_LOCK_SECONDS)


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
    """Let a job that stands by continue now. This one's JVM still has to end, and gets what that one leaves it."""
    if session.lock is not None:
        session.lock.release()
    session.candidate.release()
    session.phases.end("announced")
    if session.options.standby:
        use_idle_processor_time()
