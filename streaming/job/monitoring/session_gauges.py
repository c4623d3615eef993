"""The gauges of what a job starts with: Spark's internals, the Python worker, executors, topics with their reader."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge
from pyspark.sql import SparkSession

from streaming.job.monitoring.metrics import Metrics
from streaming.job.spark_internals.python_worker.worker_choice import choose
from streaming.job.spark_internals.registry import INTERNALS, is_used
from streaming.job.topics.watch import CoordinatorTopicsWatch

TOPICS = "topics"
"""The name of the reader in the metrics."""


def serve_internals(registry: CollectorRegistry, spark: SparkSession, python_worker: str) -> None:
    """Add the gauges to ``registry``; they are constant. ``python_worker`` is the option of that name."""
    used = Gauge(
        "group_coordinator_spark_internal",
        "1 for an internal of Spark that the job uses, 0 for one that is left out.",
        ["entry"],
        registry=registry,
    )
    for internal in INTERNALS:
        used.labels(internal.name).set(is_used(internal, spark))
    worker = Gauge(
        "group_coordinator_python_worker_info", "1 for the Python worker that runs.", ["worker"], registry=registry
    )
    worker.labels(choose(python_worker, spark.version).worker).set(1)


def serve_executors(registry: CollectorRegistry, lacking: Mapping[str, int]) -> None:
    """Add the gauge of the executors of a cluster to ``registry``: how many lack a setting of the job, by its name."""
    gauge = Gauge(
        "group_coordinator_executors_lacking",
        "Executors that lacked a setting of the job when it started; alert when not 0.",
        ["setting"],
        registry=registry,
    )
    for setting, executors in lacking.items():
        gauge.labels(setting).set(executors)


def serve_topics(metrics: Metrics, watch: CoordinatorTopicsWatch) -> None:
    """Add the gauges of the newest inspection, and the watch as a reader: the job is not live without it.

    The watch also finds requests that no batch has read.
    """
    metrics.add_reader(TOPICS, watch.is_alive)
    watch.on_ends = metrics.note_ends
    problems = Gauge(
        "group_coordinator_topic_problems",
        "Settings of the topics with which the job would not start, such as CreateTime; alert when not 0.",
        registry=metrics.registry,
    )
    problems.set_function(lambda: len(watch.found.problems))
    risks = Gauge(
        "group_coordinator_topic_risks",
        "Settings of the topics that are risky, such as one replica.",
        registry=metrics.registry,
    )
    risks.set_function(lambda: len(watch.found.risks))
