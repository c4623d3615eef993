"""What the machine has used and waited for, from Linux's /proc and cgroup; other systems report nothing of it."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from streaming.job.monitoring.slow_batches.run_queue import RunQueue
from streaming.job.monitoring.slow_batches.usage import Resource
from streaming.job.pace.processor_time import ProcessorTime

PROC = Path("/proc")
QUOTA = Path("/sys/fs/cgroup/cpu.stat")
"""Of cgroup v2: as a container sees its own."""

PRESSURES: dict[str, Resource] = {
    "cpu": "waiting-for-cpu",
    "io": "waiting-for-disk",
    "memory": "waiting-for-memory",
}

LOOP = range(4_000)
"""The fixed piece of work: about 0.15 ms."""


class Machine:
    """Reads the machine of this process. Not thread-safe. ``proc`` and ``quota`` are where Linux has its figures."""

    def __init__(self, proc: Path = PROC, quota: Path = QUOTA) -> None:
        self._proc = proc
        self._quota = quota
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._processor_time = ProcessorTime(os.getpid())
        self._run_queue = RunQueue(os.getpid(), proc)
        self._speed = Speed()

    def used(self) -> dict[Resource, float]:
        """What has been used until now, in seconds, as far as this system reports it."""
        used: dict[Resource, float] = {"job-cpu": self._processor_time.used()}
        with suppress(OSError, ValueError):
            used |= self._processors()
        for pressure, resource in PRESSURES.items():
            with suppress(OSError, ValueError):
                used[resource] = self._stalled(pressure)
        waited = self._run_queue.waited()
        if waited is not None:
            used["waiting-for-cpu"] = waited
        with suppress(OSError, ValueError):
            used |= dict(self._throttled())
        used["slowed"] = self._speed.slowed(time.monotonic(), _loop_seconds())
        return used

    def _processors(self) -> dict[Resource, float]:
        with (self._proc / "stat").open() as lines:
            user, nice, system, _idle, _disk, *interrupts, stolen = map(int, lines.readline().split()[1:9])
        return {
            "machine-cpu": (user + nice + system + sum(interrupts)) / self._ticks,
            "stolen": stolen / self._ticks,
        }

    def _stalled(self, pressure: str) -> float:
        with (self._proc / "pressure" / pressure).open() as lines:
            return int(lines.readline().rpartition("total=")[2]) / 1e6

    def _throttled(self) -> Iterator[tuple[Resource, float]]:
        for line in self._quota.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "throttled_usec":
                yield "throttled", int(value) / 1e6


class Speed:
    """Adds up how much longer a fixed piece of work takes than at its fastest, as if it were done all the time."""

    def __init__(self) -> None:
        self._least = float("inf")
        self._seconds: float | None = None
        self._slowed = 0.0

    def slowed(self, seconds: float, took: float) -> float:
        """The seconds lost until now, on a monotonic clock, when the work has just taken ``took`` seconds."""
        self._least = min(self._least, took)
        if self._seconds is not None:
            self._slowed += (seconds - self._seconds) * (1 - self._least / took)
        self._seconds = seconds
        return self._slowed


def _loop_seconds() -> float:
    """The CPU time of the fixed piece of work."""
    began = time.thread_time()
    total = 0
    for number in LOOP:
        total += number
    return max(1e-9, time.thread_time() - began)
