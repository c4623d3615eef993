"""`python -m tests.bench.growth`: how cost grows with each thing that can grow; about 10 minutes.

Each curve varies one thing and keeps the others. Latencies are request to response at a fixed rate; what was measured
is kept under bench-results/ as JSON and as one picture.
"""

import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated

import matplotlib as mpl
import msgspec
import typer
from matplotlib.figure import Figure
from rich.console import Console

from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.broker import EmbeddedBroker
from streaming.client import CoordinatorClient
from streaming.profiles import PROFILES
from tests.bench.coordinators import Coordinator, median_ms, running
from tests.bench.environment import RESULTS, commit, machine, versions
from tests.bench.events import Events, Membership
from tests.bench.figures import Idle, Scale
from tests.bench.latency import percentile, schedule
from tests.bench.scenarios import LATENCY, Bench, idle

WARM_UP_SECONDS = 15.0
RATE = 1_000
GROUPS = 1_000
FEW = 20
TOPICS_A_COMMIT = 20
"""Of a hundred partitions each."""

SETTLED = Scale(settling_seconds=3.0, idle_seconds=10.0)
"""After a load."""


class Steps(msgspec.Struct, frozen=True):
    """How far each thing grows, and how long each point is measured."""

    rates: tuple[int, ...] = (10, 100, 1_000, 3_000, 6_000, 10_000, 14_000)
    members: tuple[int, ...] = (1, 10, 50, 100, 200)
    offsets: tuple[int, ...] = (0, 100, 1_000, 10_000)
    touched: tuple[int, ...] = (10, 100, 1_000, 4_000, 10_000)
    idle_groups: tuple[int, ...] = (1_000, 10_000, 100_000)
    state_partitions: tuple[int, ...] = (1, 2)
    cores: tuple[int, ...] = (1, 2)
    seconds: float = 4.0
    warm_up_seconds: float = WARM_UP_SECONDS


SHORT = Steps((100, 1_000), (1, 10), (0, 100), (10, 100), (1_000,), (1, 2), (1, 2), 3.0, 5.0)


class Point(msgspec.Struct, frozen=True):
    """``value`` is ms unless the curve says otherwise; ``batch_ms`` is what a batch took meanwhile."""

    at: int
    value: float
    p99: float
    batch_ms: float


class Curve(msgspec.Struct, frozen=True):
    """One thing that grows, and what becomes of the cost."""

    title: str
    grows: str
    unit: str
    points: list[Point]


class ProfileCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a profile costs while nobody says anything, and what an answer takes at a few requests a second."""

    name: str
    batch_interval_ms: int
    idle: Idle
    p50_ms: float
    p99_ms: float


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """All curves of a run, and the profiles."""

    date: str
    commit: str
    machine: dict[str, str]
    versions: dict[str, str]
    curves: list[Curve]
    profiles: list[ProfileCost]


class _Grown:
    """A warm coordinator and the events to it."""

    def __init__(self, bench: Bench, coordinator: Coordinator, steps: Steps) -> None:
        self._bench = bench
        self._coordinator = coordinator
        self._steps = steps
        self.events: Events = bench.events(coordinator)

    def form(self, kind: str, groups: int, members: int) -> list[Membership]:
        return self.events.form_groups((f"{kind}-{groups}-{members}-{number}" for number in range(groups)), members)

    def beat(self, at: int, members: list[Membership], rate: int, seconds: float | None = None) -> Point:
        """Their heartbeats in turn, so many a second."""
        beats = self.events.beats(members)
        began = time.time()
        timings = self.events.beat(beats, schedule(rate, seconds or self._steps.seconds))
        batches = self._coordinator.batches(began, time.time())
        p50, p99 = (round(1000 * percentile(timings.latencies, percent), 1) for percent in (50, 99))
        return Point(at, p50, p99, median_ms(batches))

    def silence(self, at: int) -> Point:
        """What a batch takes while nobody says anything."""
        began = time.time()
        time.sleep(self._steps.seconds)
        taken = [batch.milliseconds for batch in self._coordinator.batches(began, time.time())]
        return Point(at, percentile(taken, 50), percentile(taken, 99), percentile(taken, 50))


def _by_rate(grown: _Grown, steps: Steps, bench: Bench) -> Curve:
    members = grown.form("rate", GROUPS, 1)
    points = []
    for rate in steps.rates:
        bench.say(f"{rate:,} heartbeats/s over {GROUPS:,} groups")
        points.append(grown.beat(rate, members, rate))
    return Curve(f"Requests a second, over {GROUPS:,} groups", "heartbeats/s", "ms", points)


def _by_members(grown: _Grown, steps: Steps, bench: Bench) -> Curve:
    points = []
    for size in steps.members:
        bench.say(f"100 groups of {size}")
        points.append(grown.beat(size, grown.form("members", 100, size), RATE))
    return Curve(f"Members of a group: 100 groups, {RATE:,} heartbeats/s", "members", "ms", points)


def _by_offsets(grown: _Grown, steps: Steps, bench: Bench, coordinator: Coordinator) -> Curve:
    points = []
    servers, prefix = bench.broker.bootstrap_servers, coordinator.topics.prefix
    with CoordinatorClient(servers, topic_prefix=prefix, client_id="bench") as client:
        for count in steps.offsets:
            bench.say(f"100 groups that hold {count:,} offsets")
            members = grown.form(f"offsets-{count}", 100, 1)
            if count:
                partitions = [PartitionToCommit(number, 42) for number in range(100)]
                topics = [TopicToCommit(f"topic-{number}", partitions) for number in range(count // 100)]
                for group_id, member_id, generation_id in members:
                    # A request is a record, and a broker takes none of more than a megabyte.
                    for first in range(0, len(topics), TOPICS_A_COMMIT):
                        some = topics[first : first + TOPICS_A_COMMIT]
                        client.offset_commit(OffsetCommitRequest(group_id, some, generation_id, member_id))
            points.append(grown.beat(count, members, RATE))
    return Curve(f"Offsets of a group: 100 groups, {RATE:,} heartbeats/s", "offsets", "ms", points)


def _by_touched(grown: _Grown, steps: Steps, bench: Bench) -> Curve:
    points = []
    members = grown.form("touched", max(steps.touched), 1)
    beats = grown.events.beats(members)
    for count in steps.touched:
        bench.say(f"{count:,} groups touched at once")
        seconds = [max(grown.events.beat(beats[:count], [0.0] * count).latencies) for _ in range(5)]
        middle, longest = (round(1000 * percentile(seconds, percent), 1) for percent in (50, 100))
        points.append(Point(count, middle, longest, 0.0))
    return Curve("Groups touched at once: until the last is answered", "groups", "ms", points)


def _by_idle_groups(grown: _Grown, steps: Steps, bench: Bench) -> Curve:
    points, there = [], 0
    for count in steps.idle_groups:
        bench.say(f"{count:,} quiet groups of 2")
        grown.events.form_groups((f"quiet-{number}" for number in range(there, count)), 2)
        there = count
        points.append(grown.silence(count))
    return Curve("Quiet groups of 2 members: what an idle batch takes", "groups", "ms", points)


def _one_job(bench: Bench, steps: Steps) -> Iterator[Curve]:
    with running("growth", bench.broker, bench.folder, LATENCY) as coordinator:
        grown = _Grown(bench, coordinator, steps)
        with grown.events:
            bench.say("warming up")
            grown.beat(0, grown.form("warm", GROUPS, 1), RATE, steps.warm_up_seconds)
            yield _by_rate(grown, steps, bench)
            yield _by_members(grown, steps, bench)
            yield _by_offsets(grown, steps, bench, coordinator)
            yield _by_touched(grown, steps, bench)
            yield _by_idle_groups(grown, steps, bench)


def _job_by_job(
    bench: Bench,
    steps: Steps,
    title: str,
    grows: str,
    values: tuple[int, ...],
    setting: Callable[[int], dict[str, object]],
) -> Curve:
    points = []
    for value in values:
        bench.say(f"{grows}: {value}")
        name = f"{grows.replace(' ', '-')}-{value}"
        with running(name, bench.broker, bench.folder, LATENCY | setting(value)) as coordinator:
            grown = _Grown(bench, coordinator, steps)
            with grown.events:
                members = grown.form("one", GROUPS, 1)
                grown.beat(0, members, RATE, steps.warm_up_seconds)
                points.append(grown.beat(value, members, RATE))
    return Curve(title, grows, "ms", points)


def curves(bench: Bench, steps: Steps) -> Iterator[Curve]:
    """All of them."""
    yield from _one_job(bench, steps)
    rate = f"{RATE:,} heartbeats/s over {GROUPS:,} groups"
    parts = "state partitions"
    yield _job_by_job(
        bench, steps, f"State partitions: {rate}", parts, steps.state_partitions, lambda n: {"state-partitions": n}
    )
    yield _job_by_job(bench, steps, f"Spark's cores: {rate}", "cores", steps.cores, lambda n: {"master": f"local[{n}]"})


def profile_costs(bench: Bench, steps: Steps) -> Iterator[ProfileCost]:
    """Each profile on a coordinator of its own, with a few groups."""
    for name, profile in PROFILES.items():
        bench.say(f"profile {name}")
        with running(f"profile-{name}", bench.broker, bench.folder, {"profile": name}) as coordinator:
            grown = _Grown(bench, coordinator, steps)
            with grown.events:
                members = grown.form("few", FEW, 1)
                grown.beat(0, members, RATE // 10, steps.warm_up_seconds)
                silent = idle(coordinator, bench.scale, FEW)
                point = grown.beat(0, members, FEW, 2 * steps.seconds)
        yield ProfileCost(
            name=name,
            batch_interval_ms=profile.trigger_interval_ms,
            idle=silent,
            p50_ms=point.value,
            p99_ms=point.p99,
        )


def draw(growth: Growth) -> Figure:
    """All curves in one picture."""
    figure = Figure(figsize=(11, 13), layout="constrained")
    for place, curve in enumerate(growth.curves, start=1):
        axes = figure.add_subplot(4, 2, place)
        at = [point.at for point in curve.points]
        for what, values, style in (
            ("p50", [point.value for point in curve.points], "o-"),
            ("p99", [point.p99 for point in curve.points], "o:"),
            ("a batch", [point.batch_ms for point in curve.points], "x--"),
        ):
            if any(values):
                axes.plot(at, values, style, label=what)
        axes.set_xscale("log" if at[-1] > 10 * max(1, at[0]) and at[0] else "symlog" if at[-1] > 10 else "linear")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(curve.grows)
        axes.set_ylabel(curve.unit)
        axes.set_title(curve.title, fontsize=10)
        axes.legend(fontsize=8)
    return figure


def main(
    short: Annotated[bool, typer.Option("--short", help="A few small points: to see that it works.")] = False,
) -> None:
    """Measure all curves, and draw them."""
    console = Console(stderr=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()

    def say(what: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:5.0f}s[/dim]  {what}", highlight=False)

    date = datetime.now().astimezone()
    before = commit(), machine(), versions()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="group-coordinator-growth-")))
        broker = stack.enter_context(EmbeddedBroker(data_dir=folder / "kafka"))
        bench, steps = Bench(broker, folder, SETTLED, say), SHORT if short else Steps()
        profiles = list(profile_costs(bench, steps))
        measured = list(curves(bench, steps))
    growth = Growth(
        date=date.isoformat(timespec="seconds"),
        commit=before[0],
        machine=before[1],
        versions=before[2],
        curves=measured,
        profiles=profiles,
    )
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / date.strftime("growth-%Y%m%d-%H%M%S")
    file.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(growth), indent=2) + b"\n")
    mpl.use("agg")
    draw(growth).savefig(file.with_suffix(".png"), dpi=110)
    console.print(f"kept as {file}.json and .png", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    typer.run(main)
