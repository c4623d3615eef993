"""The job's liveness and readiness, and whether it is warm.

The checks read what the readers of :mod:`streaming.job.monitoring.readers` have noted, and call neither Spark nor
Kafka: a call into a JVM that hangs would hang, too.
"""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from streaming.contract.monitoring_server import Check, Health
from streaming.job.monitoring.clock_skew import LARGEST_SKEW_SECONDS
from streaming.job.monitoring.metrics import WARM_BATCHES, Metrics


class HealthLimits(NamedTuple):
    """Beyond these, a job is not live or not ready.

    ``batch_seconds``: how long requests may wait without a batch, and Spark's JVM may not answer; not live beyond it.
    ``backlog``: how many requests may wait; not ready beyond it.
    """

    batch_seconds: float
    backlog: int


def job_health(metrics: Metrics, limits: HealthLimits, clock: Callable[[], float] = time.monotonic) -> Health:
    """The checks of a job whose batches are counted in ``metrics``.

    The first batch after a start of the query may take as long as any other. While the query waits for the brokers, the
    job is live, since a restart would not bring them back, and not ready.
    """
    began = clock()

    def live() -> Iterator[Check]:
        last, waiting, answered = metrics.last_batch_at, metrics.waiting_since, metrics.answered_at
        now = clock()
        if metrics.stands_by:
            yield Check("batches", True, "another job is active")
        elif metrics.brokers_away:
            yield Check("batches", True, "the query waits for the brokers")
        elif last is not None and waiting is None:
            yield Check("batches", True, "all requests are read")
        else:
            earliest = (metrics.active_since or began) if last is None else max(last, waiting or last)
            seconds = now - max(earliest, metrics.query_started_at or earliest)
            waiting_for = "the first batch has not ended" if last is None else "requests wait for the next batch"
            text = f"{waiting_for}, {seconds:.0f} s so far"
            yield Check("batches", seconds <= limits.batch_seconds, text)
        if answered is not None:
            seconds = now - answered
            yield Check("Spark", seconds <= limits.batch_seconds, f"its JVM has answered {seconds:.0f} s ago")
        # Those of the query end with it.
        for reader, is_alive in () if metrics.brokers_away else metrics.readers.items():
            alive = is_alive()
            yield Check(f"reader of {reader}", alive, "runs" if alive else "has ended")

    def ready() -> Iterator[Check]:
        yield from live()
        has_batch = metrics.last_batch_at is not None
        yield Check("first batch", has_batch, "has ended" if has_batch else "has not ended")
        waits = "the query waits for them" if metrics.brokers_away else "the query does not wait for them"
        yield Check("brokers", not metrics.brokers_away, waits)
        skew = metrics.skew_seconds
        yield Check("clocks", abs(skew) <= LARGEST_SKEW_SECONDS, f"the brokers' are {skew:+.1f} s off the driver's")
        yield Check("backlog", metrics.backlog.requests <= limits.backlog, str(metrics.backlog))

    def warm() -> list[Check]:
        ran = "has run while it stood by" if metrics.has_warmed_up else f"{metrics.batches} of {WARM_BATCHES} have run"
        return [Check("batches", metrics.is_warm, ran)]

    return Health(lambda: list(live()), lambda: list(ready()), warm)
