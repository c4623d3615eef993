"""Stop a query between two batches, which no public method of Spark does."""

import time
from contextlib import suppress
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.job.spark_internals.java_objects import JVM_IS_GONE, java_virtual_machine
from streaming.job.spark_internals.registry import BATCH_END, TRIGGER_CLOCK, is_used
from streaming.job.spark_internals.trigger_clock import HeldTriggers, QueryHasEnded, has_trigger_clock

LAST_BATCH_LIMIT_SECONDS = 60.0

IDLE_SECONDS = 3.0
"""A query that runs nothing for so long, more than a trigger interval of any profile, has no batch in flight."""


def stop_after_batch(query: StreamingQuery, limit_seconds: float = LAST_BATCH_LIMIT_SECONDS) -> None:
    """Stop the query when its batch in flight is complete; after ``limit_seconds``, leave it to the caller.

    A query without a trigger clock that has nothing to read stops after :data:`IDLE_SECONDS`; append a wake event to
    stop it sooner.
    ``StreamingQuery.stop`` interrupts the batch, which then runs again after the next start. That is harmless, but it
    delays the batch's responses by a restart. It is the fallback: for a batch that takes too long, and where this Spark
    keeps the query's state elsewhere.
    """
    with suppress(*JVM_IS_GONE, TypeError, PySparkException, QueryHasEnded):
        spark = SparkSession.active()
        if is_used(BATCH_END, spark):
            _terminate_after_batch(spark, query, time.monotonic() + limit_seconds)


def _terminate_after_batch(spark: SparkSession, query: StreamingQuery, deadline: float) -> None:
    java_query: Any = query._jsq
    held = HeldTriggers(spark, query) if is_used(TRIGGER_CLOCK, spark) and has_trigger_clock(query) else None
    terminated = getattr(java_virtual_machine(spark).org.apache.spark.sql.execution.streaming.runtime, "TERMINATED$")
    # Spark reads this state after each batch, and also between planning a batch and running it. A batch that is
    # planned would be given up: so the state is set when no batch can begin, while one runs, or when none has run for
    # long.
    if held is not None:
        held.await_idle(deadline)
    else:
        _await_next_spark_job(spark, deadline)
    java_query.streamingQuery().state().set(getattr(terminated, "MODULE$"))
    if held is not None:
        held.let_go()
    # pyspark takes whole seconds, and at least one.
    query.awaitTermination(max(1, round(deadline - time.monotonic())))


def _await_next_spark_job(spark: SparkSession, deadline: float) -> None:
    # A Spark job that runs already may be over, and the next batch planned, before the state is set.
    tracker = spark.sparkContext.statusTracker()
    running = active = set(tracker.getActiveJobsIds())
    now = idle_since = time.monotonic()
    while running.issuperset(active) and now < min(deadline, idle_since + IDLE_SECONDS):
        time.sleep(0.001)
        active, now = set(tracker.getActiveJobsIds()), time.monotonic()
        idle_since = now if active else idle_since
