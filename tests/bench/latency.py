"""Latencies without coordinated omission.

A sender that waits for an answer before it sends the next request sends less while the answers are slow, and so
leaves out the very requests that would have been slow. Here all sending times are fixed in advance, and a latency
counts from the time at which its request was due.
"""

import math
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds. All 0 when there was no answer."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


class Timings(NamedTuple):
    """Of requests sent on a schedule; seconds, in the order of the answers and of the requests."""

    latencies: list[float]
    late: list[float]
    failed: int


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest rank: a value that occurred, with ``percent`` of all at or below it."""
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]


def summary(seconds: Sequence[float]) -> Latency:
    """A summary in milliseconds of values in seconds."""
    if not seconds:
        return Latency(count=0, p50_ms=0.0, p99_ms=0.0, max_ms=0.0)
    p50, p99, most = (round(percentile(seconds, percent) * 1000, 1) for percent in (50, 99, 100))
    return Latency(count=len(seconds), p50_ms=p50, p99_ms=p99, max_ms=most)


def schedule(rate: float, seconds: float, seed: int = 3) -> list[float]:
    """When to send: one time in each interval of 1/rate seconds, at random within it.

    Times at even distances would keep in step with the batches of the job, and meet them all at the same point or
    at every other one. The seed gives all coordinators the same schedule.
    """
    chance = random.Random(seed)
    return [(index + chance.random()) / rate for index in range(round(rate * seconds))]


def run_schedule(times: Sequence[float], send: Callable[[int], Future[Any]], limit_seconds: float) -> Timings:
    """Call ``send(index)`` at each of the times (seconds from now) and wait for all that it returns.

    A future that fails, or is not complete ``limit_seconds`` after the last was sent, counts as failed.
    """
    latencies: list[float] = []
    answered = threading.Semaphore(0)
    begin = time.perf_counter()

    def note(due: float) -> Callable[[Future[Any]], None]:
        def done(future: Future[Any]) -> None:
            if future.exception() is None:
                latencies.append(time.perf_counter() - due)
            answered.release()

        return done

    late = []
    for index, moment in enumerate(times):
        due = begin + moment
        time.sleep(max(0.0, due - time.perf_counter()))
        late.append(time.perf_counter() - due)
        send(index).add_done_callback(note(due))
    deadline = time.monotonic() + limit_seconds
    for _ in times:
        if not answered.acquire(timeout=max(0.0, deadline - time.monotonic())):
            break
    in_time = list(latencies)
    return Timings(in_time, late, len(times) - len(in_time))
