"""What the job keeps from its start to its end: Spark, the topics, the metrics, its place among the candidates."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from streaming.contract.monitoring_server import serving_monitoring
from streaming.contract.waits import announcing_waits
from streaming.embedded.jars import Jars
from streaming.embedded.temporary_folder import TemporaryFolder, temporary_folder
from streaming.job.checkpoints.checkpoint import Checkpoint
from streaming.job.checkpoints.file_systems import job_jars
from streaming.job.checkpoints.local_folder import checkpoint_location, local_path
from streaming.job.checkpoints.lock import CheckpointLock, checkpoint_lock
from streaming.job.election.candidate import Candidate, candidate
from streaming.job.executors.check import check_executors, lacking, require_master
from streaming.job.executors.settings import executor_settings
from streaming.job.lifecycle.phases import PhaseRecorder
from streaming.job.monitoring.health import HealthLimits, job_health
from streaming.job.monitoring.metrics import Metrics
from streaming.job.monitoring.session_gauges import serve_executors, serve_internals, serve_topics
from streaming.job.options import JobOptions
from streaming.job.parts import SHIPPED, JobParts
from streaming.job.query import requests_by_group
from streaming.job.session import spark_session
from streaming.job.spark_internals import registry
from streaming.job.spark_internals.hadoop_defaults import drop_hadoop_defaults
from streaming.job.spark_internals.internal_settings import unset_missing_classes
from streaming.job.spark_internals.own_jvm import JVM_END_LIMIT_SECONDS
from streaming.job.spark_internals.python_worker.worker_choice import choose
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.watch import CoordinatorTopicsWatch, watching
from streaming.job.wake_events.producer import WakeEvents

Report = Callable[[str], None]


class JobSession(NamedTuple):
    """What lasts from the start of the job to its end, while the query may be stopped and started."""

    spark: SparkSession
    requests: DataFrame
    checkpoint: Checkpoint
    options: JobOptions
    parts: JobParts
    watch: CoordinatorTopicsWatch
    metrics: Metrics
    candidate: Candidate
    lock: CheckpointLock | None
    """None if the checkpoint is not a local folder, or executors on other hosts write it."""
    wakes: WakeEvents
    phases: PhaseRecorder
    temporary: Path
    """The folder for everything temporary. It lasts until Spark has ended: tasks of a stopped query may still write."""


def start_session(
    options: JobOptions,
    stack: ExitStack,
    report: Report,
    parts: JobParts = SHIPPED,
    *,
    jvm_end_limit_seconds: float = JVM_END_LIMIT_SECONDS,
) -> JobSession:
    """Create the topics, start Spark and serve the metrics; all of them end with ``stack``.

    The JVM is killed when its end takes longer than ``jvm_end_limit_seconds``.

    Raises:
        CannotRun: a topic or Spark does not fit.
        JarResolutionError, MissingPrerequisite: see :func:`streaming.embedded.jars.resolve_jars`.
    """
    with announcing_waits(report, options.bootstrap_servers):
        found = ensure_topics(options.librdkafka_config, options.topics, options.layout)
    for risk in found.risks:
        report(f"warning: {risk}")
    watch = CoordinatorTopicsWatch(options.librdkafka_config, options.topics, options.layout, found)
    own = stack.enter_context(candidate(options.librdkafka_config, options.topics.coordinators))
    jars = job_jars(options.checkpoint, report)
    folder = local_path(options.checkpoint) if options.is_local else None
    lock = None if folder is None else stack.enter_context(checkpoint_lock(folder))
    temporary = stack.enter_context(temporary_folder())
    cores = max(options.state_partitions or 1, found.partition_counts(options.topics).requests)
    spark = stack.enter_context(_spark(options, parts, jars, temporary, lock, jvm_end_limit_seconds, report, cores))
    stack.enter_context(watching(watch))
    metrics = Metrics()
    if options.metrics_port is not None:
        # Before the query starts, so that a port in use ends the job before it has changed anything.
        port = stack.enter_context(_serving_metrics(options, options.metrics_port, metrics, spark, watch))
        report(f"serving metrics at port {port}")
    wakes = WakeEvents(options.librdkafka_config, options.topics.requests)
    checkpoint = Checkpoint(spark, checkpoint_location(options.checkpoint))
    requests = requests_by_group(spark, options, parts)
    return JobSession(
        spark, requests, checkpoint, options, parts, watch, metrics, own, lock, wakes, PhaseRecorder(), temporary.path
    )


@contextmanager
def _spark(
    options: JobOptions,
    parts: JobParts,
    jars: Jars,
    temporary: TemporaryFolder,
    lock: CheckpointLock | None,
    jvm_end_limit_seconds: float,
    report: Report,
    cores: int,
) -> Iterator[SparkSession]:
    settings = parts.spark_settings(options, jars)
    report(f"starting Spark at {options.master}")
    if not options.is_local:
        require_master(options.master)
        settings = executor_settings(settings, temporary.path, report, cores=cores)
    with spark_session(
        settings,
        temporary=temporary,
        inherited=() if lock is None else lock.descriptors,
        jvm_end_limit_seconds=jvm_end_limit_seconds,
    ) as spark:
        if not options.is_local and (warning := check_executors(spark, local_path(options.checkpoint), cores)):
            report(warning)
        if warning := registry.warning(registry.left_out(spark)):
            report(warning)
        unset_missing_classes(spark)
        if lock is not None and not parts.keeps_hadoop_defaults:
            drop_hadoop_defaults(spark)
        report(f"Python workers: {choose(options.python_worker, spark.version).why}")
        yield spark


def _serving_metrics(
    options: JobOptions, port: int, metrics: Metrics, spark: SparkSession, watch: CoordinatorTopicsWatch
) -> AbstractContextManager[int]:
    serve_internals(metrics.registry, spark, options.python_worker)
    if not options.is_local:
        serve_executors(metrics.registry, lacking(spark, choose(options.python_worker, spark.version).worker))
    serve_topics(metrics, watch)
    health = job_health(metrics, HealthLimits(options.health_batch_limit_ms / 1000, options.health_backlog_limit))
    return serving_monitoring(options.metrics_host, port, metrics.registry, health)
