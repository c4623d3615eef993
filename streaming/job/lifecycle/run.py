"""The job from its start to its stop."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from streaming.contract.errors import BrokersFailed, CannotRun
from streaming.embedded.temporary_folder import clear_leftovers
from streaming.job.checkpoints.damage import damage_after_failure
from streaming.job.executors.warming import warming_executors
from streaming.job.lifecycle.activation import become_active
from streaming.job.lifecycle.archive_in_background import making_class_archive, needs_class_archive
from streaming.job.lifecycle.interruptions import (
    LONGEST_ABSENCE_SECONDS,
    BrokersAway,
    ending_if_set_back,
    has_given_brokers_up,
)
from streaming.job.lifecycle.job_session import JobSession, Report, start_session
from streaming.job.lifecycle.job_signals import StopSignals, stop_signals
from streaming.job.lifecycle.query_start import start_query
from streaming.job.lifecycle.stopping import (
    hand_over_if_complete,
    require_end,
    stop_as_requested,
    stop_query,
    stopping_in_time,
)
from streaming.job.monitoring.backlog import Backlog, BacklogReport
from streaming.job.monitoring.clock_skew import SkewReport
from streaming.job.monitoring.metrics import Progress
from streaming.job.options import JobOptions
from streaming.job.parts import SHIPPED, JobParts
from streaming.job.spark_internals import registry
from streaming.job.spark_internals.java_objects import progress_after
from streaming.job.spark_internals.own_jvm import JVM_END_LIMIT_SECONDS
from streaming.job.topics.creation import admin_client
from streaming.job.topics.layout import Partitions
from streaming.job.topics.rights import missing_job_rights

STARTING_POLL_SECONDS = 0.1
POLL_SECONDS = 0.5
"""How often the job looks at the query, before it is ready and after: each look is a call into the JVM."""

FIRST_START = "the job starts"
AFTER_RIVAL = "the job that was active before has written its next batch"

START_AGAIN_SECONDS = 60.0
"""How long a query that has run tries to start again, and every query while the brokers fail."""

MAX_FAILURE_LINES = 12

CONCURRENT_UPDATE = "CONCURRENT_STREAM_LOG_UPDATE"
"""Spark's class of errors for a batch that another query has written."""


NOT_AUTHORIZED = "Not authorized to access"
"""What the message of Kafka's Java client begins with where a right is missing."""


def run_job(
    options: JobOptions,
    report: Report = print,
    parts: JobParts = SHIPPED,
    on_stop: Callable[[], object] = lambda: None,
) -> None:
    """Run the coordinator until SIGTERM or SIGINT; the batch in flight finishes first.

    Call it from the main thread, where Python handles signals. ``report`` is called with each line for the user; the
    line that begins with ``ready`` follows the first batch. ``parts`` are those of the job as it ships, unless a
    measurement replaces one. ``on_stop`` is called on a thread at the first signal.

    The stop takes at most :data:`~streaming.job.lifecycle.stopping.STOP_LIMIT_SECONDS`, then the process ends.

    Raises:
        CannotRun: the job cannot start, or the query has failed.
        JarResolutionError, MissingPrerequisite: see :func:`streaming.embedded.jars.resolve_jars`.
    """
    with (
        stop_signals() as signals,
        stopping_in_time(report, on_stop),
        ending_if_set_back(report),
        ExitStack() as stack,
    ):
        session = start_session(options, stack, report, parts)
        become_active(session, report)
        why: str | None = FIRST_START
        while why is not None:
            partitions = session.watch.found.partition_counts(options.topics)
            with ExitStack() as until_stopped:
                query = _start_with_retries(session, partitions, until_stopped, report, signals, why)
                if not options.is_local:
                    until_stopped.enter_context(warming_executors(session.spark, query, options.checkpoint))
                signals.let_batches_finish()
                if why == FIRST_START:
                    # Now: clients of a job that takes over wait for the start of its query.
                    _tidy_up(options, stack, report)
                why = _run_until_stopped(query, signals, session, partitions, report)
                if why is None:
                    # Before the clean-up, which takes a while: a job that stands by need not wait for it.
                    hand_over_if_complete(query, session)
                    if phases := session.phases.finish():
                        report(phases.line())
                    report("stopped")


def _tidy_up(options: JobOptions, stack: ExitStack, report: Report) -> None:
    """Do what no client waits for."""
    # Again: the JVM of a job that was killed has ended by now.
    clear_leftovers()
    if needs_class_archive(options):
        stack.enter_context(making_class_archive(report))


def start(
    options: JobOptions, stack: ExitStack, report: Report, *, jvm_end_limit_seconds: float = JVM_END_LIMIT_SECONDS
) -> StreamingQuery:
    """Start a session and its query; both end with ``stack``. See :func:`start_session`."""
    session = start_session(options, stack, report, jvm_end_limit_seconds=jvm_end_limit_seconds)
    become_active(session, report)
    return start_query(session, session.watch.found.partition_counts(options.topics), stack, report)


def _start_with_retries(
    session: JobSession, partitions: Partitions, stack: ExitStack, report: Report, signals: StopSignals, why: str
) -> StreamingQuery:
    """Start the query; ``why`` is the reason of :func:`_run_until_stopped`, :data:`FIRST_START` at first.

    Raises:
        CannotRun: it cannot start; after it has run, or while the brokers fail, not within
            :data:`START_AGAIN_SECONDS`.
    """
    deadline = time.monotonic() + START_AGAIN_SECONDS
    while True:
        try:
            return start_query(session, partitions, stack, report, after_rival=why == AFTER_RIVAL)
        except CannotRun as failure:
            # Brokers come back one after the other, or go away again; also right after a job has taken over.
            is_final = why == FIRST_START and not isinstance(failure, BrokersFailed)
            if is_final or session.candidate.failure or time.monotonic() > deadline or signals.requested.is_set():
                raise
            report(f"{failure}; trying again")
            signals.requested.wait(POLL_SECONDS)


def _run_until_stopped(
    query: StreamingQuery, signals: StopSignals, session: JobSession, partitions: Partitions, report: Report
) -> str | None:
    """Run until a signal, a failure, or a reason to start the query again; returns that, or None.

    Raises:
        CannotRun: the query has failed, or this job is no longer the active one.
    """
    watch, is_ready, clocks = session.watch, False, SkewReport(report)
    away = BrokersAway(session.candidate.silence)
    seconds_away = 0.0
    backlog = BacklogReport(partial(progress_after, query), report)
    candidate = session.candidate
    while query.isActive and watch.failure is candidate.failure is None and not watch.has_grown(partitions):
        if away.has_begun():
            report("the brokers do not answer: the query starts again when they do")
            session.metrics.note_brokers_away()
            stop_query(query, signals.requested)
            seconds_away = away.wait(signals.requested)
            break
        if signals.requested.wait(POLL_SECONDS if is_ready else STARTING_POLL_SECONDS):
            break
        for line in watch.news():
            report(f"warning: {line}")
        # The batches prove smaller differences, but are measured for the metrics only.
        clocks.update(max(session.metrics.skew_seconds, watch.clocks.skew_seconds, key=abs))
        if is_ready:
            backlog.update()
        elif progress_after(query, -1):
            is_ready = True
            report(_ready_line(session.options, backlog.first()))
            _report_take_over(session, query, report)
    if query.isActive and watch.failure is candidate.failure is None:
        stop_as_requested(query, session, report)
    elif query.isActive:
        stop_query(query)
    if signals.requested.is_set() and candidate.silence() > LONGEST_ABSENCE_SECONDS:
        # Whatever has ended the query, nobody can be asked why.
        return None
    why = _reason_to_start_again(query, session, partitions, seconds_away)
    if why is None or (query.exception() is None and signals.requested.is_set()):
        return None
    report(f"starting the query again, because {why}")
    require_end(query)
    return why


def _reason_to_start_again(
    query: StreamingQuery, session: JobSession, partitions: Partitions, seconds_away: float
) -> str | None:
    """Why a query that has stopped can go on; None if nothing but a signal has stopped it.

    Raises:
        CannotRun: it cannot go on.
    """
    watch, candidate = session.watch, session.candidate
    failure = query.exception()
    if failure is not None:
        watch.look(missing_limit_seconds=0)
    if reason := candidate.failure or watch.failure:
        raise CannotRun(reason)
    if failure is not None and CONCURRENT_UPDATE in str(failure) and candidate.overtaken is not None:
        # It had planned a batch in the moment when this one took its place. It can plan no further ones.
        return AFTER_RIVAL
    if failure is not None and CONCURRENT_UPDATE in str(failure):
        # That job learns in the next moment that it is no longer the active one, and says so.
        raise CannotRun("another job has become the active one: it has written the next batch")
    if failure is not None and has_given_brokers_up(str(failure)):
        return "Spark's Kafka client has waited for the brokers for too long"
    if failure is not None:
        raise CannotRun(failure_line(failure, session))
    if seconds_away:
        return f"the brokers were away for {seconds_away:.0f} s"
    return "a topic has more partitions" if watch.has_grown(partitions) else None


def _report_take_over(session: JobSession, query: StreamingQuery, report: Report) -> None:
    """Report the phases of a take-over, when its first batch has ended."""
    for text in progress_after(query, -1)[:1]:
        first = msgspec.json.decode(text, type=Progress)
        session.phases.end_first_batch(first.timestamp, first.duration_ms)
    if phases := session.phases.finish():
        report(phases.line())


def _ready_line(options: JobOptions, backlog: Backlog) -> str:
    topics = options.topics
    behind = f"; working off a backlog first: {backlog}" if backlog.requests else ""
    return (
        f"ready: append requests to {topics.requests} and read responses from {topics.responses} "
        f"at {options.bootstrap_servers}{behind}"
    )


def failure_line(failure: PySparkException, session: JobSession) -> str:
    """Why a query has failed, in one line: the right that the job lacks, the damage, or what Spark says."""
    # The query's plan follows in Spark's message, and stack traces of all layers are between its lines.
    message = str(failure).partition("=== Streaming Query ===")[0]
    stripped = [line.strip() for line in message.splitlines()]
    lines = " | ".join([line for line in stripped if line and not line.startswith("at ")][:MAX_FAILURE_LINES])
    if NOT_AUTHORIZED in lines and (refused := _missing_rights(session)):
        return f"the query failed: {refused}"
    damage = None
    if registry.is_used(registry.CHECKPOINT_LAYOUT, session.spark):
        damage = damage_after_failure(session.checkpoint, session.options.checkpoint, lines)
    return damage or f"the query failed: {lines}"


def _missing_rights(session: JobSession) -> str:
    """The rights that the job lacks, as one line; the empty text if it lacks none, or nobody can tell."""
    options = session.options
    with suppress(BrokersFailed), admin_client(options.librdkafka_config) as admin:
        return "; ".join(missing_job_rights(admin, options.topics))
    return ""
