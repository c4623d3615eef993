"""Ends the query and the job within limits that hold also while no broker answers."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.contract.errors import CannotRun
from streaming.embedded.interruption import exit_code
from streaming.embedded.stop_signals import CHILD_ENDED, StopRequest, end_at_once, ending_late_stop
from streaming.job.lifecycle.activation import hand_over
from streaming.job.lifecycle.interruptions import LONGEST_ABSENCE_SECONDS
from streaming.job.lifecycle.job_session import JobSession, Report
from streaming.job.lifecycle.phases import HAND_OVER
from streaming.job.spark_internals import registry
from streaming.job.spark_internals.batch_end import stop_after_batch
from streaming.job.spark_internals.java_objects import JVM_IS_GONE
from streaming.job.spark_internals.own_jvm import kill_jvm

STOP_LIMIT_SECONDS = 15.0
"""How long the whole stop may take. Afterwards, the process ends as by a kill, after which nothing is lost."""

BATCH_LIMIT_SECONDS = 5.0
"""How long the stop waits for the batch in flight. One that is interrupted runs again after the next start."""

QUERY_LIMIT_SECONDS = 4.0
"""How long a query may take to stop once its batch is interrupted: Spark waits for Kafka's clients, without a limit."""

END_LIMIT_SECONDS = 60.0
"""How long an interrupted query may take to end before another one starts in its place."""

LOOK_SECONDS = 0.1


@contextmanager
def stopping_in_time(report: Report, on_signal: Callable[[], object]) -> Iterator[None]:
    """End this process and its JVM at once if the block lasts longer than the limit after a stop signal.

    ``on_signal`` is called on a thread at the first one. The exit code is 1 after the end of a child.
    """

    def end(number: int) -> None:
        report(f"the stop has taken {STOP_LIMIT_SECONDS:g} s: ending at once, as a kill would; nothing is lost by it")
        kill_jvm()
        end_at_once(1 if number == CHILD_ENDED else exit_code())

    with ending_late_stop(STOP_LIMIT_SECONDS, end, on_signal):
        yield


def stop_as_requested(query: StreamingQuery, session: JobSession, report: Report) -> None:
    """Stop the query after its batch in flight, or at once if the brokers do not answer."""
    if session.candidate.silence() > LONGEST_ABSENCE_SECONDS:
        report("stopping at once: the brokers do not answer")
        stop_query(query)
        return
    session.phases.begin(HAND_OVER)
    report("stopping after the batch in flight")
    if not registry.is_used(registry.TRIGGER_CLOCK, session.spark):
        # An idle query has none, and stops after the one that reads this.
        session.wakes.append()
    stop_after_batch(query, BATCH_LIMIT_SECONDS)
    session.phases.end("batch complete")
    if not has_ended(query):
        report("the batch in flight is interrupted: it runs again after the next start")
        stop_query(query)


def stop_query(query: StreamingQuery, requested: StopRequest | None = None) -> bool:
    """Interrupt the query's batch, and wait until the query has ended; returns whether it has.

    The wait ends after :data:`QUERY_LIMIT_SECONDS`; they count from a request to stop if one is given.
    """

    def stop() -> None:
        with suppress(*JVM_IS_GONE, PySparkException):
            query.stop()

    stopping = threading.Thread(target=stop, name="query-stop", daemon=True)
    stopping.start()
    deadline = time.monotonic() + QUERY_LIMIT_SECONDS
    while stopping.is_alive() and time.monotonic() < deadline:
        if requested is not None and not requested.is_set():
            deadline = time.monotonic() + QUERY_LIMIT_SECONDS
        stopping.join(LOOK_SECONDS)
    return not stopping.is_alive()


def hand_over_if_complete(query: StreamingQuery, session: JobSession) -> None:
    """Hand over, unless the query is still stopping or has failed: then the next job has to find out what was read."""
    if has_ended(query) and query.exception() is None:
        hand_over(session)


def has_ended(query: StreamingQuery) -> bool:
    """Whether a query has ended with its last batch.

    Its ``isActive`` is false from the moment on in which somebody stops it, while its batch may run on; and
    ``awaitTermination`` looks at the same state.
    """
    return all(other.id != query.id for other in SparkSession.active().streams.active)


def require_end(query: StreamingQuery) -> None:
    """Wait until a query that was stopped has ended: Spark starts no other one of its name before.

    Raises:
        CannotRun: it does not end.
    """
    deadline = time.monotonic() + END_LIMIT_SECONDS
    while not has_ended(query):
        if time.monotonic() > deadline:
            raise CannotRun(f"the query has not stopped within {END_LIMIT_SECONDS:g} s: start the job again")
        time.sleep(LOOK_SECONDS)
