"""What has been used until now, by resource, and how much of it in a batch. Pure: the caller passes the times."""

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from operator import attrgetter
from typing import Literal, NamedTuple

Resource = Literal[
    "collecting",
    "compiling",
    "job-cpu",
    "machine-cpu",
    "waiting-for-cpu",
    "waiting-for-disk",
    "waiting-for-memory",
    "throttled",
    "stolen",
    "slowed",
]

Used = Mapping[Resource, float]
"""Seconds by resource. One that this system does not report is not among them.

collecting, compiling: of Java's garbage collectors and compilers. job-cpu: of the job's processes on this host.
machine-cpu: of all processes. waiting-for-cpu: that the threads which a batch waits for were ready and did not run.
waiting-for-disk, waiting-for-memory: in which at least one process waited (Linux's pressure stall information).
throttled: in which the job's cgroup had used up its quota of CPU time. stolen: of the CPU time that the
host has given to other guests. slowed: that a fixed piece of work has taken longer than at its fastest.
"""

KEPT_SAMPLES = 600
"""At five samples a second, two minutes."""


class Sample(NamedTuple):
    """What has been used until ``seconds`` (since the epoch)."""

    seconds: float
    used: Used


class Usage:
    """The latest samples. Not thread-safe."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=KEPT_SAMPLES)

    def add(self, sample: Sample) -> None:
        """Add a sample, later than all before it; after a leap back of the clock, those before it are forgotten."""
        if self._samples and sample.seconds <= self._samples[-1].seconds:
            self._samples.clear()
        self._samples.append(sample)

    @property
    def until(self) -> float:
        """The time of the newest sample; before the first one, it is infinitely long ago."""
        return self._samples[-1].seconds if self._samples else float("-inf")

    def between(self, began: float, ended: float) -> Used:
        """What was used in this interval; nothing for one that the samples do not cover.

        Between two samples, use is taken as even.
        """
        if not self._samples or not self._samples[0].seconds <= began <= ended <= self.until:
            return {}
        first, last = self._at(began), self._at(ended)
        return {resource: last[resource] - first[resource] for resource in last.keys() & first.keys()}

    def _at(self, seconds: float) -> Used:
        place = bisect_left(self._samples, seconds, key=attrgetter("seconds"))
        after = self._samples[place]
        if after.seconds == seconds:
            return after.used
        before = self._samples[place - 1]
        share = (seconds - before.seconds) / (after.seconds - before.seconds)
        return {
            resource: before.used[resource] + share * (after.used[resource] - before.used[resource])
            for resource in before.used.keys() & after.used.keys()
        }
