"""The means that the scenarios share: a broker and a folder, and loads whose latencies and CPU time are measured."""

import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from streaming.embedded.broker import EmbeddedBroker
from streaming.job.pace.processor_time import ProcessorTime
from tests.bench.events import Events, PreparedRequest
from tests.bench.figures import Heartbeats, Scale, Window
from tests.bench.latency import Timings, percentile, schedule, summary
from tests.bench.systems.coordinators import Coordinator
from tests.bench.usage import cpu_time, machine_cpu_seconds

STEADY_RATE = 1_000
STEADY_GROUPS = 1_000
FULL_RATE = 10_000
FULL_MEMBERS = 10


class Bench(NamedTuple):
    """What every scenario needs. ``report`` prints what is being measured."""

    broker: EmbeddedBroker
    folder: Path
    scale: Scale
    report: Callable[[str], None]

    def events(self, coordinator: Coordinator) -> Events:
        """Connect a load generator to the topics of a coordinator."""
        topics = coordinator.topics
        return Events(self.broker.bootstrap_servers, topics.requests, topics.responses)


@contextmanager
def measuring(name: str, scale: Scale) -> Iterator[Bench]:
    """What the scenarios need, with a broker of its own. What is being measured is shown with the seconds so far."""
    console = Console(stderr=True)
    # SIGTERM must end the broker and the coordinators, too: as an exception it runs their exit handlers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()

    def report(activity: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:5.0f}s[/dim]  {activity}", highlight=False)

    with (
        tempfile.TemporaryDirectory(prefix=f"group-coordinator-{name}-") as folder,
        EmbeddedBroker(data_dir=Path(folder) / "kafka") as broker,
    ):
        yield Bench(broker, Path(folder), scale, report)


class _CpuSeconds(NamedTuple):
    """CPU seconds used so far by this process, by the coordinator, and by the whole machine."""

    generator: float
    coordinator: float
    machine: float

    @classmethod
    def now(cls, coordinator: ProcessorTime) -> "_CpuSeconds":
        return cls(time.process_time(), coordinator.used(), machine_cpu_seconds())


class Load(NamedTuple):
    """Heartbeats at a fixed rate: a warm-up, then the measured part."""

    rate: int
    groups: int
    members: int
    warm_up_seconds: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.rate:,} heartbeats/s for {self.warm_up_seconds:g} + {self.seconds:g} s"

    def measure(
        self, send: Callable[[Sequence[float]], Timings], coordinator_pid: int, interval: list[float] | None = None
    ) -> Heartbeats:
        """Send on schedule and measure.

        Args:
            send: Sends a request at each of the times (seconds from now), and returns when they were answered.
            coordinator_pid: The process whose CPU time, with that of its descendants, is the coordinator's.
            interval: Receives the start and the end of the measured part, seconds since the epoch.
        """
        send(schedule(self.rate, self.warm_up_seconds, seed=1))
        times = schedule(self.rate, self.seconds, seed=2)
        coordinator = cpu_time(coordinator_pid)
        began, before = time.time(), _CpuSeconds.now(coordinator)
        timings = send(times)
        if interval is not None:
            interval += [began, time.time()]
        return self._figures(timings, before, _CpuSeconds.now(coordinator), times)

    def _figures(self, timings: Timings, before: _CpuSeconds, after: _CpuSeconds, times: Sequence[float]) -> Heartbeats:
        seconds = times[-1]
        generator, coordinator, machine = ((now - then) / seconds for now, then in zip(after, before, strict=True))
        return Heartbeats(
            rate=round(len(times) / seconds),
            groups=self.groups,
            members=self.members,
            latency=summary(timings.latencies),
            sent_late=summary(timings.late),
            failed=timings.failed,
            coordinator_cores=round(coordinator, 3),
            generator_cores=round(generator, 3),
            other_cores=round(max(0.0, machine - generator - coordinator), 3),
            seconds=list(windows(timings, 1)),
        )


def windows(timings: Timings, seconds: int) -> Iterator[Window]:
    """Split latencies into windows of so many seconds, by when their requests were due."""
    latencies: dict[int, list[float]] = {}
    for due, latency in zip(timings.due, timings.latencies, strict=True):
        latencies.setdefault(int(due) // seconds, []).append(latency * 1000)
    for number, values in sorted(latencies.items()):
        p50, p99 = (round(percentile(values, percent), 1) for percent in (50, 99))
        yield Window(number * seconds, len(values), p50, p99)


def shuffled(requests: Iterable[PreparedRequest]) -> list[PreparedRequest]:
    """Return the requests in an order that is independent of their groups."""
    copied = list(requests)
    random.Random(7).shuffle(copied)
    return copied


def group_names(kind: str, count: int) -> list[str]:
    """Return ``count`` distinct group ids."""
    return [f"{kind}-{number}" for number in range(count)]
