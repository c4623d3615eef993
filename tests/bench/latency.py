"""Latencies without coordinated omission.

A sender that waits for a response before it sends the next request sends fewer requests while responses are slow, and
so omits the very requests that would have been slow. Here all sending times are fixed in advance, and a latency
counts from the time at which its request was due.
"""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import msgspec


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles in milliseconds. All are 0 when there was no response."""

    count: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float


class Timings(NamedTuple):
    """The timings of requests sent on a schedule, in seconds.

    ``latencies`` and ``due``, which counts from the start of the schedule, are in the order of the responses. ``late``
    is how much later than due each request was sent, in the order of the requests.
    """

    latencies: list[float]
    due: list[float]
    late: list[float]
    failed: int


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the percentile by nearest rank: the least of the values that ``percent`` of them do not exceed."""
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]


def summary(seconds: Sequence[float]) -> Latency:
    """Summarize values in seconds as milliseconds."""
    if not seconds:
        return Latency(count=0, p50_ms=0.0, p90_ms=0.0, p99_ms=0.0, max_ms=0.0)
    p50, p90, p99, most = (round(percentile(seconds, percent) * 1000, 1) for percent in (50, 90, 99, 100))
    return Latency(count=len(seconds), p50_ms=p50, p90_ms=p90, p99_ms=p99, max_ms=most)


def schedule(rate: float, seconds: float, seed: int = 3) -> list[float]:
    """Return sending times in seconds: one at a random point of each interval of 1/rate seconds.

    Evenly spaced times could fall into step with the job's batches, and always arrive at the same point of one. The
    seed gives all coordinators the same schedule.
    """
    chance = random.Random(seed)
    return [(index + chance.random()) / rate for index in range(round(rate * seconds))]
