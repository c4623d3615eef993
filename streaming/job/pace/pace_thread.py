"""Tells a query to look for requests: when some have arrived that start a batch, and now and then in any case."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Protocol

from confluent_kafka import KafkaException, Message
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.client.errors import CoordinatorError
from streaming.contract.topics import CAN_WAIT
from streaming.job.options import JobOptions
from streaming.job.pace.arrivals import Arrivals
from streaming.job.pace.collection import Collection
from streaming.job.pace.credit import Credit
from streaming.job.pace.processor_time import ProcessorTime
from streaming.job.profiles import PROFILES
from streaming.job.spark_internals.java_objects import JVM_IS_GONE, java_virtual_machine
from streaming.job.spark_internals.trigger_clock import QueryHasEnded, TriggerClock

log = logging.getLogger(__name__)

PACE = "pace"
"""The name of the thread among the readers in the metrics."""

POLL_SECONDS = 0.1
"""How long the thread waits for a request without a look at whether it is to end."""

ANYWAY_SECONDS = 5.0
"""How often the query looks even if no request was seen: whoever sees them may be mistaken."""

LEAST_DISTANCE_SECONDS = 0.02
"""Between two looks. A look that finds nothing takes a few milliseconds of CPU time."""

FAILURE_PAUSE_SECONDS = 0.5
END_LIMIT_SECONDS = 5.0


class Clock(Protocol):
    """Lets a query look for requests, as :class:`~streaming.job.spark_internals.trigger_clock.TriggerClock` does."""

    def look(self) -> None:
        """Let it look once."""


class PaceThread(threading.Thread):
    """Sees requests arrive, and lets the query look for them. An exception is logged, and the thread goes on."""

    def __init__(
        self, clock: Callable[[], Clock], arrivals: Callable[[], Arrivals], interval_seconds: float, cores: float
    ) -> None:
        super().__init__(name=PACE, daemon=True)
        self._make_clock = clock
        self._arrivals = arrivals
        self._collection = Collection(interval_seconds)
        self._processor_time = ProcessorTime(os.getpid())
        self._credit = Credit(cores, time.monotonic(), self._processor_time.used())
        self._stopped = threading.Event()
        self._has_more = threading.Event()

    def note_rest(self) -> None:
        """Note that a batch has not read all that was in the log: another one is to follow. Any thread may call it."""
        self._has_more.set()

    def stop(self) -> None:
        """End the thread; one that hangs in the JVM ends with the process."""
        self._stopped.set()
        self.join(END_LIMIT_SECONDS)

    def run(self) -> None:
        try:
            self._clock = self._make_clock()
            while not self._stopped.is_set():
                self._follow()
        except JVM_IS_GONE:
            # The job itself reports it and ends.
            log.debug("the JVM has ended")
        except QueryHasEnded:
            # The job itself reports it, too.
            log.debug("the query has ended before its first batch")

    def _follow(self) -> None:
        try:
            with closing(self._arrivals()) as arrivals:
                # Nobody has seen what arrived before.
                self._look(arrivals)
                while not self._stopped.is_set():
                    self._await_requests(arrivals)
                    self._await_credit()
                    if not self._stopped.is_set():
                        self._look(arrivals)
        except JVM_IS_GONE:
            raise
        except Exception as failure:
            # An outage of the brokers is reported by the job itself.
            level = logging.DEBUG if isinstance(failure, (KafkaException, CoordinatorError)) else logging.ERROR
            log.log(level, "requests are not seen to arrive", exc_info=failure)
            self._clock.look()
            self._stopped.wait(FAILURE_PAUSE_SECONDS)

    def _await_requests(self, arrivals: Arrivals) -> None:
        """Wait until a batch should begin, or it is time to look in any case."""
        look_at = time.monotonic() + ANYWAY_SECONDS
        while not (self._collection.is_complete or self._has_more.is_set() or self._stopped.is_set()):
            due_at = self._collection.due_at()
            left = min(look_at, due_at or look_at) - time.monotonic()
            if left <= 0:
                return
            record = arrivals.next(min(POLL_SECONDS, left))
            if record is not None:
                self._collection.add(time.monotonic(), can_wait=_can_wait(record))

    def _await_credit(self) -> None:
        now = time.monotonic()
        self._credit.note(now, self._processor_time.used())
        begin_at = min(self._credit.free_at(), self._collection.latest() or now)
        self._stopped.wait(max(0.0, begin_at - now))

    def _look(self, arrivals: Arrivals) -> None:
        # First: a request that arrives from now on is seen by the look, or is not passed over.
        arrivals.skip()
        self._collection.take(time.monotonic())
        self._has_more.clear()
        self._clock.look()
        arrivals.confirm()
        self._stopped.wait(LEAST_DISTANCE_SECONDS)


def _can_wait(record: Message) -> bool:
    return any(header[0] == CAN_WAIT for header in record.headers() or ())


def _budget(spark: SparkSession, options: JobOptions) -> float:
    """The cores that are the budget. Java, and not Python, counts those that a container may use."""
    if options.cpu_budget is not None:
        return options.cpu_budget
    cores: int = java_virtual_machine(spark).java.lang.Runtime.getRuntime().availableProcessors()
    return PROFILES[options.profile].cpu_share * cores


@contextmanager
def pacing(spark: SparkSession, query: StreamingQuery, options: JobOptions, partitions: int) -> Iterator[PaceThread]:
    """Let a query look for requests when there are some, within the block; yields the thread.

    The query has the trigger interval :data:`~streaming.job.spark_internals.trigger_clock.STEP_MS`.
    """
    thread = PaceThread(
        partial(TriggerClock, spark, query),
        partial(Arrivals, options.librdkafka_config, options.topics.requests, partitions),
        options.batch_interval_ms / 1000,
        _budget(spark, options),
    )
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()
