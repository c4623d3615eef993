"""The job from its start to its stop: topics, checkpoint, session, query, metrics."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from coordinator_logic.timing.sessions import late_answer_ms
from streaming.contract.errors import CannotRun
from streaming.contract.identity import read_identity_keys
from streaming.contract.monitoring_server import serving_monitoring
from streaming.embedded.jars import resolve_jars
from streaming.job.checkpoint import (
    STARTS_FOLDER,
    TOPIC_FOLDER,
    Checkpoint,
    CheckpointLock,
    check_layout,
    check_topic_id,
    checkpoint_lock,
    local_path,
)
from streaming.job.checkpoint_damage import check_damage, damage_after_failure
from streaming.job.election.candidate import Candidate, candidate
from streaming.job.group_batch.settings import Settings
from streaming.job.job_signals import StopSignals, stop_signals
from streaming.job.monitoring.backlog import Backlog, BacklogReport
from streaming.job.monitoring.clock_skew import SkewReport
from streaming.job.monitoring.health import HealthLimits, job_health
from streaming.job.monitoring.internals_metrics import serve_internals
from streaming.job.monitoring.metrics import Metrics
from streaming.job.monitoring.readers import feeding_metrics
from streaming.job.monitoring.topics_metrics import serve_topics
from streaming.job.options import JobOptions
from streaming.job.query import checkpoint_location, coordinator_query, warm_up_query
from streaming.job.rows import Limits
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals import registry
from streaming.job.spark_internals.batch_end import stop_after_batch
from streaming.job.spark_internals.hadoop_defaults import drop_hadoop_defaults
from streaming.job.spark_internals.internal_settings import unset_missing_classes
from streaming.job.spark_internals.java_objects import progress_after
from streaming.job.spark_internals.own_jvm import JVM_END_LIMIT_SECONDS
from streaming.job.spark_internals.worker_choice import choose
from streaming.job.state_stores import DEFAULT_STATE_STORE, STATE_STORES, StateStore
from streaming.job.topics.creation import admin_client, ensure_topics
from streaming.job.topics.inspection import TopicInspection
from streaming.job.topics.layout import Partitions
from streaming.job.topics.losses import lost_requests
from streaming.job.topics.watch import TopicWatch, watching

DEFAULT_STATE_PARTITIONS = 1
POLL_SECONDS = 0.1
MAX_FAILURE_LINES = 12

CONCURRENT_UPDATE = "CONCURRENT_STREAM_LOG_UPDATE"
"""Spark's class of errors for a batch that another query has written."""

FENCED_LOCK_SECONDS = 1.0
"""How long a job waits for the checkpoint's lock of a job that it has overtaken: a dead one's JVM may still end."""

Report = Callable[[str], None]


def run_job(options: JobOptions, report: Report = print) -> None:
    """Run the coordinator until SIGTERM or SIGINT; the batch in flight finishes first.

    Call it from the main thread, where Python handles signals. ``report`` is called with each line for the user; the
    line that begins with ``ready`` follows the first batch.

    Raises:
        CannotRun: the job cannot start, or the query has failed.
        JarResolutionError, MissingPrerequisite: see :func:`streaming.embedded.jars.resolve_jars`.
    """
    with stop_signals() as signals, ExitStack() as stack:
        session = start_session(options, stack, report)
        become_active(session, report)
        starts_again = True
        while starts_again:
            partitions = session.watch.found.partition_counts(options.topics)
            with ExitStack() as until_stopped:
                query = start_query(session, partitions, until_stopped, report)
                signals.let_batches_finish()
                starts_again = _run_until_stopped(query, signals, session, partitions, report)
        _hand_over(session)


class JobSession(NamedTuple):
    """What lasts from the start of the job to its end, while the query may be stopped and started."""

    spark: SparkSession
    options: JobOptions
    watch: TopicWatch
    metrics: Metrics
    candidate: Candidate
    lock: CheckpointLock | None
    """None if the checkpoint is not a local folder, or executors on other hosts write it."""


def start(
    options: JobOptions, stack: ExitStack, report: Report, *, jvm_end_limit_seconds: float = JVM_END_LIMIT_SECONDS
) -> StreamingQuery:
    """Start a session and its query; both end with ``stack``. See :func:`start_session`."""
    session = start_session(options, stack, report, jvm_end_limit_seconds=jvm_end_limit_seconds)
    become_active(session, report)
    return start_query(session, session.watch.found.partition_counts(options.topics), stack, report)


def start_session(
    options: JobOptions, stack: ExitStack, report: Report, *, jvm_end_limit_seconds: float = JVM_END_LIMIT_SECONDS
) -> JobSession:
    """Create the topics, start Spark and serve the metrics; all of them end with ``stack``.

    The JVM is killed when its end takes longer than ``jvm_end_limit_seconds``. Raises what :func:`run_job` raises.
    """
    found = ensure_topics(options.librdkafka_config, options.topics, options.layout)
    for risk in found.risks:
        report(f"warning: {risk}")
    watch = TopicWatch(options.librdkafka_config, options.topics, options.layout, found)
    rival = stack.enter_context(candidate(options.librdkafka_config, options.topics.coordinators))
    jars = resolve_jars(report)
    folder = local_path(options.checkpoint) if options.is_local else None
    lock = None if folder is None else stack.enter_context(checkpoint_lock(folder))
    inherited = () if lock is None else (lock.descriptor,)
    settings = spark_settings(options, jars)
    report(f"starting Spark at {options.master}")
    session = spark_session(settings, inherited=inherited, jvm_end_limit_seconds=jvm_end_limit_seconds)
    spark = stack.enter_context(session)
    if warning := registry.warning(registry.left_out(spark)):
        report(warning)
    unset_missing_classes(spark)
    if folder is not None:
        drop_hadoop_defaults(spark)
    report(f"Python workers: {choose(options.python_worker, spark.version).why}")
    stack.enter_context(watching(watch))
    metrics = Metrics()
    if options.metrics_port is not None:
        serve_internals(metrics.registry, spark, options.python_worker)
        serve_topics(metrics, watch)
        # Before the query starts, so that a port in use ends the job before it has changed anything.
        health = job_health(metrics, HealthLimits(options.health_batch_limit_ms / 1000, options.health_backlog_limit))
        served = serving_monitoring(options.metrics_host, options.metrics_port, metrics.registry, health)
        report(f"serving metrics at port {stack.enter_context(served)}")
    return JobSession(spark, options, watch, metrics, rival, lock)


def become_active(session: JobSession, report: Report) -> None:
    """Make this job the active one of its topics; with the option ``standby``, wait while another one is.

    Raises:
        CannotRun: another job is active, or uses the checkpoint.
    """
    rival = session.candidate
    has_taken = False
    while not has_taken:
        if session.options.standby and not rival.is_free():
            with _warming_up(session):
                rival.wait_until_free(report)
        elif not session.options.standby:
            rival.require_free()
        has_taken = rival.take()
    if session.lock is None:
        return
    if rival.overtaken is None:
        session.lock.acquire()
        return
    # That job is fenced: whether it hangs or is dead, Spark refuses its next batch. So this one need not wait for it.
    with suppress(CannotRun):
        session.lock.acquire(FENCED_LOCK_SECONDS)


def _hand_over(session: JobSession) -> None:
    """Let a job that stands by continue now, while this one's JVM still has to end."""
    if session.lock is not None:
        session.lock.release()
    session.candidate.release()


def start_query(session: JobSession, partitions: Partitions, stack: ExitStack, report: Report) -> StreamingQuery:
    """Start the query on its checkpoint, for topics with so many partitions; ``stack`` ends the count of its batches.

    Raises:
        CannotRun: the checkpoint does not fit the options or the topics.
    """
    spark, options, watch, metrics, _, _ = session
    checkpoint = Checkpoint(spark, checkpoint_location(options))
    if registry.is_used(registry.CHECKPOINT_LAYOUT, spark):
        check_damage(checkpoint, options.checkpoint)
    is_new = checkpoint.is_new()
    state_partitions, state_store = _checked_checkpoint(checkpoint, options, watch.found, partitions, report)
    _configure_state(spark, state_partitions, state_store)
    starts = checkpoint.record_start(time.time_ns() // 1_000_000)
    if len(starts) == 1 and not is_new:
        report(
            f"warning: checkpoint {options.checkpoint} has lost its folder {STARTS_FOLDER} with the times of earlier "
            'starts (see "Damage" in docs/operations.md)'
        )
    settings = _settings(options, partitions, starts)
    query = coordinator_query(spark, options, settings, state_partitions).start()
    if options.metrics_port is not None:
        stack.enter_context(feeding_metrics(metrics, query, options.librdkafka_config, options.topics.directory))
    return query


def _configure_state(spark: SparkSession, state_partitions: int, state_store: StateStore) -> None:
    for key, value in STATE_STORES[state_store].items():
        spark.conf.set(key, value)
    spark.conf.set("spark.sql.shuffle.partitions", str(state_partitions))


def _settings(options: JobOptions, partitions: Partitions, starts: tuple[int, ...]) -> Settings:
    config = msgspec.structs.replace(
        options.protocol,
        requests_topic=options.topics.requests,
        requests_partitions=partitions.requests,
        late_answer_ms=late_answer_ms(options.batch_interval_ms),
    )
    return Settings(
        options.topics,
        partitions.responses,
        config,
        starts,
        Limits(request=options.max_request_bytes),
        has_deadline_checks=True,
        identity_keys=read_identity_keys(options.identity_key_file),
    )


@contextmanager
def _warming_up(session: JobSession) -> Iterator[None]:
    """Run a query of the coordinator's shape within the block, so that the coordinator's own is fast from its start."""
    spark, options = session.spark, session.options
    layout = Checkpoint(spark, checkpoint_location(options)).layout()
    state_partitions = layout.state_partitions if layout else options.state_partitions or DEFAULT_STATE_PARTITIONS
    state_store = (layout.state_store if layout else options.state_store) or DEFAULT_STATE_STORE
    _configure_state(spark, state_partitions, state_store)
    settings = _settings(options, session.watch.found.partition_counts(options.topics), ())
    with tempfile.TemporaryDirectory(prefix="group-coordinator-warm-up-") as folder:
        query = warm_up_query(spark, options, settings, state_partitions, Path(folder)).start()
        try:
            yield
        finally:
            query.stop()


def _checked_checkpoint(
    checkpoint: Checkpoint, options: JobOptions, found: TopicInspection, partitions: Partitions, report: Report
) -> tuple[int, StateStore]:
    """Check that the checkpoint fits; returns its state partitions and state store, for a new one those to use."""
    requests = options.topics.requests
    topic_id = found.topic_ids.get(requests)
    is_new = checkpoint.is_new()
    if is_new:
        report(f"starting with no groups: checkpoint {options.checkpoint} is new")
    else:
        report(f"loading groups from checkpoint {options.checkpoint}")
        check_topic_id(checkpoint.requests_topic_id(), topic_id, options)
        if checkpoint.requests_topic_id() is None:
            report(
                f"warning: checkpoint {options.checkpoint} has no folder {TOPIC_FOLDER}: it adopts {requests} with the "
                f"id {topic_id} as the topic that it has read"
            )
    if topic_id is not None and (is_new or checkpoint.requests_topic_id() is None):
        checkpoint.record_requests_topic_id(topic_id)
    with admin_client(options.librdkafka_config) as admin:
        for loss in lost_requests(admin, requests, checkpoint.offsets_read(requests)):
            report(f"warning: {loss}")
    layout = checkpoint.layout()
    if layout is None:
        return options.state_partitions or DEFAULT_STATE_PARTITIONS, options.state_store or DEFAULT_STATE_STORE
    return check_layout(layout, options, partitions)


def _run_until_stopped(
    query: StreamingQuery, signals: StopSignals, session: JobSession, partitions: Partitions, report: Report
) -> bool:
    """Run until a signal, a failure, or until a topic has more partitions; returns whether to start the query again."""
    watch, is_ready, clocks = session.watch, False, SkewReport(report)
    backlog = BacklogReport(partial(progress_after, query), report)
    rival = session.candidate
    while query.isActive and watch.failure is rival.failure is None and not watch.has_grown(partitions):
        if signals.requested.wait(POLL_SECONDS):
            break
        for line in watch.news():
            report(f"warning: {line}")
        # The batches prove smaller differences, but are measured for the metrics only.
        clocks.update(max(session.metrics.skew_seconds, watch.clocks.skew_seconds, key=abs))
        if is_ready:
            backlog.update()
        elif query.lastProgress is not None:
            is_ready = True
            report(_ready_line(session.options, backlog.first()))
    if query.isActive and watch.failure is rival.failure is None:
        report("stopping after the batch in flight")
        stop_after_batch(query)
    elif query.isActive:
        query.stop()
    failure = query.exception()
    if failure is not None:
        watch.look(missing_limit_seconds=0)
    if reason := rival.failure or watch.failure:
        raise CannotRun(reason)
    if failure is not None and CONCURRENT_UPDATE in str(failure):
        # It had planned a batch in the moment when this one took its place. It can plan no further ones.
        report("starting the query again, because the job that was active before has written its next batch")
        return True
    if failure is not None:
        raise CannotRun(_failure_line(failure, session))
    if watch.has_grown(partitions) and not signals.requested.is_set():
        report("starting the query again, because a topic has more partitions")
        return True
    report("stopped")
    return False


def _ready_line(options: JobOptions, backlog: Backlog) -> str:
    topics = options.topics
    behind = f"; working off a backlog first: {backlog}" if backlog.requests else ""
    return (
        f"ready: append requests to {topics.requests} and read responses from {topics.responses} "
        f"at {options.bootstrap_servers}{behind}"
    )


def _failure_line(failure: PySparkException, session: JobSession) -> str:
    if registry.is_used(registry.CHECKPOINT_LAYOUT, session.spark):
        checkpoint = Checkpoint(session.spark, checkpoint_location(session.options))
        if damage := damage_after_failure(checkpoint, session.options.checkpoint, _first_lines(failure)):
            return damage
    return f"the query failed: {_first_lines(failure)}"


def _first_lines(failure: PySparkException) -> str:
    # The query's plan follows in Spark's message, and stack traces of all layers are between its lines.
    message = str(failure).partition("=== Streaming Query ===")[0]
    lines = [line.strip() for line in message.splitlines()]
    return " | ".join([line for line in lines if line and not line.startswith("at ")][:MAX_FAILURE_LINES])
