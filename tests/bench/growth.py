"""`make bench-growth`: how cost grows with groups, members, offsets, requests, partitions and cores; about 10 minutes.

Each curve varies one quantity and keeps the others fixed. Latencies are from request to response at a fixed rate. The
figures are written to bench-results/, as JSON and as a plot.
"""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated

import matplotlib as mpl
import msgspec
import typer
from matplotlib.figure import Figure

from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.client import CoordinatorClient
from streaming.job.profiles import PROFILES, ProfileName
from tests.bench.environment import commit, machine, say_written, versions, write_results
from tests.bench.events import Events, Membership, PreparedRequest
from tests.bench.figures import Idle, Scale
from tests.bench.latency import percentile, schedule
from tests.bench.logic import PARTITIONS_OF_TOPIC, topics_to_commit
from tests.bench.scenarios.job import LATENCY_PROFILE
from tests.bench.scenarios.loads import Bench, measuring
from tests.bench.scenarios.silence import empty_batches, idle
from tests.bench.systems.coordinators import Coordinator, median_ms, running

WARM_UP_SECONDS = 15.0
RATE = 1_000
FEW = 20
TOPICS_PER_COMMIT = 20
"""Each with a hundred partitions."""

IDLE_AFTER_LOAD = Scale(settling_seconds=3.0, idle_seconds=10.0)
IDLE_FOR_A_MOMENT = Scale(settling_seconds=0.2, idle_seconds=1.0, empty_batches=2)


class Steps(msgspec.Struct, frozen=True):
    """The values of each quantity, and how long each point is measured."""

    rates: tuple[int, ...] = (10, 100, 1_000, 3_000, 6_000, 10_000, 14_000)
    members: tuple[int, ...] = (1, 10, 50, 100, 200)
    offsets: tuple[int, ...] = (0, 100, 1_000, 10_000)
    touched: tuple[int, ...] = (10, 100, 1_000, 4_000, 10_000)
    idle_groups: tuple[int, ...] = (1_000, 10_000, 100_000)
    state_partitions: tuple[int, ...] = (1, 2)
    cores: tuple[int, ...] = (1, 2)
    profiles: tuple[ProfileName, ...] = tuple(PROFILES)
    seconds: float = 4.0
    warm_up_seconds: float = WARM_UP_SECONDS
    groups: int = 1_000
    """Of the curves that do not vary them."""
    sized_groups: int = 100
    """Of the curves that vary members or offsets."""


SMALLEST = Steps((100,), (2,), (100,), (10,), (20,), (), (1,), ("latency",), 0.5, 0.5, groups=20, sized_groups=2)
"""A point of each curve, to see that it works; the figures say nothing. State partitions are measured as cores are."""


class Point(msgspec.Struct, frozen=True):
    """A point of a curve. ``value`` is in the curve's unit; ``batch_ms`` is the median duration of a batch."""

    at: int
    value: float
    p99: float
    batch_ms: float


class Curve(msgspec.Struct, frozen=True):
    """The cost as one quantity grows. ``quantity`` labels the x axis."""

    title: str
    quantity: str
    unit: str
    points: list[Point]


class ProfileCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of an idle job with a profile, and its latency at a few requests a second."""

    name: str
    batch_interval_ms: int
    idle: Idle
    p50_ms: float
    p99_ms: float


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a run."""

    date: str
    commit: str
    machine: dict[str, str]
    versions: dict[str, str]
    curves: list[Curve]
    profiles: list[ProfileCost]


class _Driver:
    """A coordinator and its load generator."""

    def __init__(self, bench: Bench, coordinator: Coordinator, steps: Steps) -> None:
        self._bench = bench
        self._coordinator = coordinator
        self._steps = steps
        self.events: Events = bench.events(coordinator)

    def form(self, kind: str, groups: int, members: int) -> list[Membership]:
        return self.events.form_groups((f"{kind}-{groups}-{members}-{number}" for number in range(groups)), members)

    def heartbeats(self, at: int, members: list[Membership], rate: int, seconds: float | None = None) -> Point:
        """Send the members' heartbeats one after the other, ``rate`` a second."""
        return self._measure(at, self.events.heartbeats(members), rate, seconds)

    def commits(self, at: int, members: list[Membership], rate: int) -> Point:
        """Send commits of one offset of the members' first topic, ``rate`` a second."""
        topics = [TopicToCommit("topic-0", [PartitionToCommit(3, 2_000_000)])]
        requests = [
            self.events.prepared(
                "OffsetCommit", 8, group_id, OffsetCommitRequest(group_id, topics, generation_id, member_id)
            )
            for group_id, member_id, generation_id in members
        ]
        return self._measure(at, requests, rate, None)

    def _measure(self, at: int, requests: list[PreparedRequest], rate: int, seconds: float | None) -> Point:
        began = time.time()
        timings = self.events.send_on_schedule(requests, schedule(rate, seconds or self._steps.seconds))
        batches = self._coordinator.batches(began, time.time())
        p50, p99 = (round(1000 * percentile(timings.latencies, percent), 1) for percent in (50, 99))
        return Point(at, p50, p99, median_ms(batches))

    def idle_batches(self, at: int) -> Point:
        """Measure batches that find nothing to do."""
        durations = empty_batches(self._coordinator, self._bench.scale.empty_batches)
        return Point(at, percentile(durations, 50), percentile(durations, 99), percentile(durations, 50))


def _by_rate(driver: _Driver, steps: Steps, bench: Bench) -> Curve:
    members = driver.form("rate", steps.groups, 1)
    points = []
    for rate in steps.rates:
        bench.report(f"{rate:,} heartbeats/s over {steps.groups:,} groups")
        points.append(driver.heartbeats(rate, members, rate))
    return Curve(f"Requests a second, over {steps.groups:,} groups", "heartbeats/s", "ms", points)


def _by_members(driver: _Driver, steps: Steps, bench: Bench) -> Curve:
    points = []
    for size in steps.members:
        bench.report(f"{steps.sized_groups} groups of {size}")
        points.append(driver.heartbeats(size, driver.form("members", steps.sized_groups, size), RATE))
    return Curve(f"Members of a group: {steps.sized_groups} groups, {RATE:,} heartbeats/s", "members", "ms", points)


def _by_offsets(driver: _Driver, steps: Steps, bench: Bench, coordinator: Coordinator) -> Iterator[Curve]:
    """The curves of heartbeats, and of commits of one offset."""
    heartbeats, commits = [], []
    servers, prefix = bench.broker.bootstrap_servers, coordinator.topics.prefix
    with CoordinatorClient(servers, topic_prefix=prefix, client_id="bench") as client:
        for count in steps.offsets:
            bench.report(f"{steps.sized_groups} groups with {count:,} offsets")
            members = driver.form(f"offsets-{count}", steps.sized_groups, 1)
            topics = topics_to_commit(count // PARTITIONS_OF_TOPIC)
            for group_id, member_id, generation_id in members:
                # A request is one record, and a broker refuses records of more than a megabyte.
                for first in range(0, len(topics), TOPICS_PER_COMMIT):
                    some = topics[first : first + TOPICS_PER_COMMIT]
                    client.offset_commit(OffsetCommitRequest(group_id, some, generation_id, member_id))
            heartbeats.append(driver.heartbeats(count, members, RATE))
            if count:
                commits.append(driver.commits(count, members, RATE))
    groups = f"Offsets of a group: {steps.sized_groups} groups, {RATE:,}"
    yield Curve(f"{groups} heartbeats/s", "offsets", "ms", heartbeats)
    yield Curve(f"{groups} commits/s", "offsets", "ms", commits)


def _by_touched(driver: _Driver, steps: Steps, bench: Bench) -> Curve:
    points = []
    members = driver.form("touched", max(steps.touched), 1)
    requests = driver.events.heartbeats(members)
    for count in steps.touched:
        bench.report(f"a burst to {count:,} groups")
        seconds = [max(driver.events.send_on_schedule(requests[:count], [0.0] * count).latencies) for _ in range(5)]
        middle, longest = (round(1000 * percentile(seconds, percent), 1) for percent in (50, 100))
        points.append(Point(count, middle, longest, 0.0))
    return Curve("Groups touched in one burst: time to the last response", "groups", "ms", points)


def _by_idle_groups(driver: _Driver, steps: Steps, bench: Bench) -> Curve:
    points, formed = [], 0
    for count in steps.idle_groups:
        bench.report(f"{count:,} idle groups of 2")
        driver.events.form_groups((f"idle-{number}" for number in range(formed, count)), 2)
        formed = count
        points.append(driver.idle_batches(count))
    return Curve("Idle groups of 2 members: duration of an idle batch", "groups", "ms", points)


def _one_job(bench: Bench, steps: Steps) -> Iterator[Curve]:
    with running("growth", bench.broker, bench.folder, LATENCY_PROFILE, records_progress=True) as coordinator:
        driver = _Driver(bench, coordinator, steps)
        with driver.events:
            bench.report("warming up")
            driver.heartbeats(0, driver.form("warm", steps.groups, 1), RATE, steps.warm_up_seconds)
            yield _by_rate(driver, steps, bench)
            yield _by_members(driver, steps, bench)
            yield from _by_offsets(driver, steps, bench, coordinator)
            yield _by_touched(driver, steps, bench)
            yield _by_idle_groups(driver, steps, bench)


def _job_by_job(
    bench: Bench,
    steps: Steps,
    title: str,
    quantity: str,
    values: tuple[int, ...],
    setting: Callable[[int], dict[str, object]],
) -> Curve:
    points = []
    for value in values:
        bench.report(f"{quantity}: {value}")
        name = f"{quantity.replace(' ', '-')}-{value}"
        with running(
            name, bench.broker, bench.folder, LATENCY_PROFILE | setting(value), records_progress=True
        ) as coordinator:
            driver = _Driver(bench, coordinator, steps)
            with driver.events:
                members = driver.form("one", steps.groups, 1)
                driver.heartbeats(0, members, RATE, steps.warm_up_seconds)
                points.append(driver.heartbeats(value, members, RATE))
    return Curve(title, quantity, "ms", points)


def curves(bench: Bench, steps: Steps) -> Iterator[Curve]:
    """Measure all curves."""
    yield from _one_job(bench, steps)
    rate = f"{RATE:,} heartbeats/s over {steps.groups:,} groups"
    parts = "state partitions"
    if steps.state_partitions:
        yield _job_by_job(
            bench, steps, f"State partitions: {rate}", parts, steps.state_partitions, lambda n: {"state-partitions": n}
        )
    yield _job_by_job(bench, steps, f"Spark's cores: {rate}", "cores", steps.cores, lambda n: {"master": f"local[{n}]"})


def profile_costs(bench: Bench, steps: Steps) -> Iterator[ProfileCost]:
    """Measure each profile on a job of its own, with a few groups."""
    for name in steps.profiles:
        bench.report(f"profile {name}")
        with running(
            f"profile-{name}", bench.broker, bench.folder, {"profile": name}, records_progress=True
        ) as coordinator:
            driver = _Driver(bench, coordinator, steps)
            with driver.events:
                members = driver.form("few", FEW, 1)
                driver.heartbeats(0, members, RATE // 10, steps.warm_up_seconds)
                idle_cost = idle(coordinator, bench.scale, FEW)
                point = driver.heartbeats(0, members, FEW, 2 * steps.seconds)
        yield ProfileCost(
            name=name,
            batch_interval_ms=PROFILES[name].trigger_interval_ms,
            idle=idle_cost,
            p50_ms=point.value,
            p99_ms=point.p99,
        )


def draw(growth: Growth) -> Figure:
    """Draw all curves in one figure."""
    figure = Figure(figsize=(11, 13), layout="constrained")
    for place, curve in enumerate(growth.curves, start=1):
        axes = figure.add_subplot(4, 2, place)
        at = [point.at for point in curve.points]
        for label, values, style in (
            ("p50", [point.value for point in curve.points], "o-"),
            ("p99", [point.p99 for point in curve.points], "o:"),
            ("batch", [point.batch_ms for point in curve.points], "x--"),
        ):
            if any(values):
                axes.plot(at, values, style, label=label)
        axes.set_xscale("log" if at[-1] > 10 * max(1, at[0]) and at[0] else "symlog" if at[-1] > 10 else "linear")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(curve.quantity)
        axes.set_ylabel(curve.unit)
        axes.set_title(curve.title, fontsize=10)
        axes.legend(fontsize=8)
    return figure


def main(
    smallest: Annotated[bool, typer.Option("--smallest", help="Measure a point of each curve: a smoke test.")] = False,
) -> None:
    """Measure all curves and draw them."""
    date = datetime.now().astimezone()
    environment = commit(), machine(), versions()
    steps = SMALLEST if smallest else Steps()
    with measuring("growth", IDLE_FOR_A_MOMENT if smallest else IDLE_AFTER_LOAD) as bench:
        profiles = list(profile_costs(bench, steps))
        measured = list(curves(bench, steps))
    growth = Growth(
        date=date.isoformat(timespec="seconds"),
        commit=environment[0],
        machine=environment[1],
        versions=environment[2],
        curves=measured,
        profiles=profiles,
    )
    file = write_results("growth", date, growth)
    mpl.use("agg")
    draw(growth).savefig(file.with_suffix(".png"), dpi=110)
    say_written(f"{file} and .png")


if __name__ == "__main__":
    typer.run(main)
