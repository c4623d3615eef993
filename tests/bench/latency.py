"""Latencies without coordinated omission.

A sender that waits for an answer before it sends the next request sends less while the answers are slow, and so
leaves out the very requests that would have been slow. Here all sending times are fixed in advance, and a latency
counts from the time at which its request was due.
"""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import msgspec


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds. All 0 when there was no answer."""

    count: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float


class Timings(NamedTuple):
    """Of requests sent on a schedule; seconds.

    ``latencies`` are in the order of the answers, beside when each was due (since the begin); ``late`` is in the order
    of the requests.
    """

    latencies: list[float]
    due: list[float]
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
        return Latency(count=0, p50_ms=0.0, p90_ms=0.0, p99_ms=0.0, max_ms=0.0)
    p50, p90, p99, most = (round(percentile(seconds, percent) * 1000, 1) for percent in (50, 90, 99, 100))
    return Latency(count=len(seconds), p50_ms=p50, p90_ms=p90, p99_ms=p99, max_ms=most)


def schedule(rate: float, seconds: float, seed: int = 3) -> list[float]:
    """When to send: one time in each interval of 1/rate seconds, at random within it.

    Times at even distances would keep in step with the batches of the job, and meet them all at the same point or
    at every other one. The seed gives all coordinators the same schedule.
    """
    chance = random.Random(seed)
    return [(index + chance.random()) / rate for index in range(round(rate * seconds))]
