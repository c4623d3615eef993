"""Tell a query when to look for new records, instead of letting it look in an interval.

Between two triggers, Spark waits at a clock. It gets one here that stands still until it is told to go on, which Spark
has for its own tests.
"""

import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.job.spark_internals.java_objects import java_virtual_machine

STEP_MS = 1
"""The interval of the query's triggers: the clock's next step lets one begin."""

AHEAD_MS = 60_000
"""How far the clock is ahead of the time: the query may be waiting for that already."""

POLL_SECONDS = 0.01


class TriggerClock:
    """The clock of a query whose trigger interval is :data:`STEP_MS`. From now on it looks when it is told to.

    Waits until the query's thread has begun.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        java_query: Any = query._jsq
        execution = java_query.streamingQuery()
        while (executor := execution.triggerExecutor()) is None:
            time.sleep(POLL_SECONDS)
        now = time.time_ns() // 1_000_000
        self._clock: Any = java_virtual_machine(spark).org.apache.spark.util.ManualClock(now + AHEAD_MS)
        field = executor.getClass().getDeclaredField("clock")
        field.setAccessible(True)
        field.set(executor, self._clock)

    def look(self) -> None:
        """Let the query look for records once, now or as soon as its batch in flight is complete."""
        self._clock.advance(STEP_MS)
