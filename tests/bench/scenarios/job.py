"""This job under load, with each of two profiles; and the same query with Spark's defaults, or pyspark's worker."""

import time
from collections.abc import Sequence

import msgspec

from streaming.client import CoordinatorClient
from tests.bench import figures
from tests.bench.events import Events, Membership, Sample
from tests.bench.figures import Figures, FirstMinute, Formation, Heartbeats, Touched
from tests.bench.latency import schedule
from tests.bench.scenarios.formation import measure_formation
from tests.bench.scenarios.loads import (
    FULL_MEMBERS,
    FULL_RATE,
    STEADY_RATE,
    Bench,
    Load,
    group_names,
    shuffled,
    windows,
)
from tests.bench.scenarios.pace import FIXED_INTERVAL, paced_loads
from tests.bench.scenarios.request_path import request_path
from tests.bench.systems.coordinators import DEFAULTS_MODULE, Coordinator, median_ms, running

DEFAULT_PROFILE: dict[str, object] = {}
LATENCY_PROFILE: dict[str, object] = {"profile": "latency"}

COMMITS_RATE = 500
COMMITTING_GROUPS = 100
WINDOW_SECONDS = 5


def default_job(bench: Bench) -> Figures:
    """Measure the job with its default profile, from the moment that it is ready."""
    scale, name = bench.scale, figures.DEFAULT
    with (
        running("default", bench.broker, bench.folder, DEFAULT_PROFILE, records_progress=True) as coordinator,
        bench.events(coordinator) as events,
    ):
        begun = first_minute(bench, name, events)
        paced = paced_loads(bench, name, coordinator, events)
        load = Load(STEADY_RATE, scale.steady_groups, 1, scale.default_warm_up_seconds, scale.steady_seconds)
        steady = _steady(bench, name, coordinator, events, load)
        formations = [_formation(bench, coordinator, name, *size) for size in scale.formations]
        full = _full(bench, name, coordinator, events, scale.default_full_seconds)
        return Figures(
            start_seconds=coordinator.start_seconds,
            first_minute=begun,
            steady=steady,
            full=full,
            paced=paced,
            formations=formations,
        )


def fixed_interval_job(bench: Bench) -> Figures:
    """Measure the job with its default profile, but with batches in a fixed interval."""
    scale, name = bench.scale, figures.FIXED
    with (
        running(
            "fixed", bench.broker, bench.folder, DEFAULT_PROFILE, environment=FIXED_INTERVAL, records_progress=True
        ) as coordinator,
        bench.events(coordinator) as events,
    ):
        begun = first_minute(bench, name, events)
        paced = paced_loads(bench, name, coordinator, events)
        formations = [_formation(bench, coordinator, name, *size) for size in scale.formations]
        return Figures(start_seconds=coordinator.start_seconds, first_minute=begun, paced=paced, formations=formations)


def latency_job(bench: Bench) -> Figures:
    """Measure the job with the profile ``latency``, and a request's path through it."""
    scale, name = bench.scale, figures.LATENCY
    with (
        running("latency", bench.broker, bench.folder, LATENCY_PROFILE, records_progress=True) as coordinator,
        bench.events(coordinator) as events,
    ):
        samples: list[Sample] = []
        interval: list[float] = []
        load = Load(STEADY_RATE, scale.steady_groups, 1, scale.latency_warm_up_seconds, scale.steady_seconds)
        steady = _steady(bench, name, coordinator, events, load, samples, interval)
        began, ended = interval
        path = request_path([sample for sample in samples if sample.due >= began], coordinator.batches(began, ended))
        formations = [_formation(bench, coordinator, name, *size) for size in scale.formations]
        full = _full(bench, name, coordinator, events, scale.latency_full_seconds)
    touched = groups_touched(bench, "arrow", {"python-worker": "arrow"})
    return Figures(
        start_seconds=coordinator.start_seconds,
        steady=steady,
        full=full,
        formations=formations,
        touched=touched,
        path=path,
    )


def stock_worker_job(bench: Bench) -> Figures:
    """Measure the job with pyspark's own Python worker."""
    return Figures(touched=groups_touched(bench, "stock", {"python-worker": "stock"}))


def spark_defaults_job(bench: Bench) -> Figures:
    """Measure the same query with Spark's default settings and pyspark's own worker."""
    scale, name = bench.scale, figures.SPARK_DEFAULTS
    with (
        running("spark-defaults", bench.broker, bench.folder, LATENCY_PROFILE, DEFAULTS_MODULE) as coordinator,
        bench.events(coordinator) as events,
    ):
        formations = [_formation(bench, coordinator, name, *size) for size in scale.formations]
        load = Load(STEADY_RATE, scale.steady_groups, 1, scale.short_warm_up_seconds, scale.short_seconds)
        steady = _steady(bench, name, coordinator, events, load)
        return Figures(start_seconds=coordinator.start_seconds, steady=steady, formations=formations)


def first_minute(bench: Bench, name: str, events: Events) -> FirstMinute:
    """Send offset commits to a job that has just become ready."""
    seconds = bench.scale.first_minute_seconds
    bench.report(f"{name}: the first {seconds:g} s, with {COMMITS_RATE} commits/s")
    commits = events.commits(group_names("committing", COMMITTING_GROUPS))
    timings = events.send_on_schedule(commits, schedule(COMMITS_RATE, seconds))
    return FirstMinute(
        rate=COMMITS_RATE,
        groups=COMMITTING_GROUPS,
        failed=timings.failed,
        windows=list(windows(timings, WINDOW_SECONDS)),
    )


def groups_touched(bench: Bench, name: str, settings: dict[str, object]) -> Touched:
    """Send bursts of one heartbeat to each of many groups, to a coordinator that has just started."""
    groups = bench.scale.touched_groups
    with (
        running(name, bench.broker, bench.folder, LATENCY_PROFILE | settings, records_progress=True) as coordinator,
        bench.events(coordinator) as events,
    ):
        bench.report(f"{name} worker: forming {groups:,} groups")
        members = events.form_groups(group_names("touched", groups), 1)
        warm_up, measured = bench.scale.bursts
        bench.report(f"{name} worker: {warm_up} + {measured} bursts of {groups:,} heartbeats")
        seconds = burst_seconds(events, members, warm_up + measured)
    return Touched(groups, seconds[warm_up:])


def burst_seconds(events: Events, members: Sequence[Membership], bursts: int) -> list[float]:
    """Send bursts of one heartbeat of each member; the seconds from a burst's start to its last response."""
    heartbeats = events.heartbeats(members)
    seconds = []
    for _ in range(bursts):
        timings = events.send_on_schedule(heartbeats, [0.0] * len(heartbeats))
        if timings.failed:
            raise RuntimeError(f"{timings.failed} of {len(heartbeats)} heartbeats failed")
        seconds.append(round(max(timings.latencies), 3))
    return seconds


def _steady(
    bench: Bench,
    name: str,
    coordinator: Coordinator,
    events: Events,
    load: Load,
    samples: list[Sample] | None = None,
    interval: list[float] | None = None,
) -> Heartbeats:
    groups = bench.scale.steady_groups
    bench.report(f"{name}: forming {groups:,} groups, then {load}")
    heartbeats = shuffled(events.heartbeats(events.form_groups(group_names("steady", groups), 1)))
    return load.measure(
        lambda times: events.send_on_schedule(heartbeats, times, samples=samples),
        coordinator.processes.driver,
        interval,
    )


def _full(bench: Bench, name: str, coordinator: Coordinator, events: Events, seconds: float) -> Heartbeats:
    groups = bench.scale.steady_groups
    load = Load(FULL_RATE, groups, FULL_MEMBERS, bench.scale.full_warm_up_seconds, seconds)
    bench.report(f"{name}: forming {groups:,} groups of {FULL_MEMBERS}, then {load}")
    members = events.form_groups(group_names("full", groups), FULL_MEMBERS)
    heartbeats = shuffled(events.heartbeats(members))
    return load.measure(lambda times: events.send_on_schedule(heartbeats, times), coordinator.processes.driver)


def _formation(bench: Bench, coordinator: Coordinator, name: str, members: int, groups: int) -> Formation:
    bench.report(f"{name}: forming {groups} group(s) of {members}")
    began = time.time()
    servers, prefix = bench.broker.bootstrap_servers, coordinator.topics.prefix
    with CoordinatorClient(servers, topic_prefix=prefix, client_id="bench") as client:
        formation = measure_formation(client, members, groups)
    if not coordinator.records_progress:
        return formation
    # During the delay most batches are empty. Those are shorter, and no member waits for them.
    with_requests = [batch for batch in coordinator.batches(began, time.time()) if batch.report["numInputRows"]]
    return msgspec.structs.replace(formation, batch_ms=median_ms(with_requests))
