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
IDLE_POLL_SECONDS = 0.002


class QueryHasEnded(Exception):
    """A query has ended before it had a clock: it was not able to read its checkpoint."""


class TriggerClock:
    """The clock of a query whose trigger interval is :data:`STEP_MS`. From now on it looks when it is told to.

    Waits until the query's thread has begun. Raises QueryHasEnded.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        now = time.time_ns() // 1_000_000
        self._clock: Any = java_virtual_machine(spark).org.apache.spark.util.ManualClock(now + AHEAD_MS)
        _ClockField(query).value = self._clock

    def look(self) -> None:
        """Let the query look for records once, now or as soon as its batch in flight is complete."""
        self._clock.advance(STEP_MS)


class HeldTriggers:
    """A query with a :class:`TriggerClock` that begins no batch any more, whatever that tells it, until :meth:`let_go`.

    It gets another clock, at which it waits after its batch. If it waits at its own clock now, it may begin one more.
    Raises QueryHasEnded.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        java_query: Any = query._jsq
        self._status: Any = java_query.status
        field = _ClockField(query)
        self._former: Any = field.value
        # In the past: it has not reached whatever the query waits for.
        self._clock: Any = java_virtual_machine(spark).org.apache.spark.util.ManualClock(0)
        field.value = self._clock

    def await_idle(self, deadline: float) -> None:
        """Wait until no batch is in flight, or until ``deadline`` by the monotonic clock (s)."""
        while self._status().isTriggerActive() and time.monotonic() < deadline:
            time.sleep(IDLE_POLL_SECONDS)

    def let_go(self) -> None:
        """Let the query go on, at whichever of the two clocks it waits."""
        self._clock.setTime(self._former.getTimeMillis() + AHEAD_MS)
        self._former.advance(AHEAD_MS)


def has_trigger_clock(query: StreamingQuery) -> bool:
    """Whether a query has a :class:`TriggerClock`. Raises QueryHasEnded."""
    return str(_ClockField(query).value.getClass().getSimpleName()) == "ManualClock"


class _ClockField:
    """The clock of a query's triggers. Waits until the query's thread has begun. Raises QueryHasEnded."""

    def __init__(self, query: StreamingQuery) -> None:
        java_query: Any = query._jsq
        execution = java_query.streamingQuery()
        while (executor := execution.triggerExecutor()) is None:
            if not query.isActive:
                raise QueryHasEnded
            time.sleep(POLL_SECONDS)
        self._executor: Any = executor
        self._field: Any = executor.getClass().getDeclaredField("clock")
        self._field.setAccessible(True)

    @property
    def value(self) -> Any:
        """The clock."""
        return self._field.get(self._executor)

    @value.setter
    def value(self, clock: Any) -> None:
        self._field.set(self._executor, clock)
