"""Prometheus gauges for Spark's internals: which of them the job uses, and which Python worker runs."""

from prometheus_client import CollectorRegistry, Gauge
from pyspark.sql import SparkSession

from streaming.job.spark_internals.registry import INTERNALS, is_used
from streaming.job.spark_internals.worker_choice import choose


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
