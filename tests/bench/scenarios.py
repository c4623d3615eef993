"""What is measured, in the order in which it is measured: one coordinator at a time, all before the same broker."""

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from confluent_kafka.admin import AdminClient, NewTopic

from streaming.broker import EmbeddedBroker
from streaming.client import CoordinatorClient
from tests.bench import brokers
from tests.bench.coordinators import DEFAULTS_MODULE, Batch, Coordinator, median_ms, running
from tests.bench.events import Beat, Events, Sample, echo
from tests.bench.figures import (
    BROKER,
    DEFAULTS,
    OURS,
    STOCK,
    Figures,
    Formation,
    Heartbeats,
    Idle,
    Population,
    Scale,
    Second,
    Stretch,
    Touched,
)
from tests.bench.formation import measure_formation, protocol_delay_ms
from tests.bench.latency import Timings, percentile, schedule, summary
from tests.bench.usage import cpu_seconds, machine_cpu_seconds, memory

BATCHES_KEPT = 50
"""So many at least are in the checkpoint as a whole."""

RESTART_LIMIT_SECONDS = 120.0
STEADY_RATE = 1_000
STEADY_GROUPS = 1_000
FULL_RATE = 10_000
FULL_MEMBERS = 10
MEMBERS_OF_MANY = 2
GENERATOR_SECONDS = 5.0
TOPIC_LIMIT_SECONDS = 10.0

LATENCY: dict[str, object] = {"profile": "latency"}
BALANCED: dict[str, object] = {"profile": "balanced"}

Say = Callable[[str], None]


class Bench(NamedTuple):
    """What every scenario needs."""

    broker: EmbeddedBroker
    folder: Path
    scale: Scale
    say: Say

    def events(self, coordinator: Coordinator) -> Events:
        """Requests to a coordinator."""
        topics = coordinator.topics
        return Events(self.broker.bootstrap_servers, topics.requests, topics.responses)


# --------------------------------------------------------------------------------------------------------------
# Loads


class _Cpu(NamedTuple):
    """CPU seconds used so far: by this process, by the coordinator, by the whole machine."""

    generator: float
    coordinator: float
    machine: float

    @classmethod
    def now(cls, coordinator_pid: int) -> "_Cpu":
        return cls(time.process_time(), cpu_seconds(coordinator_pid), machine_cpu_seconds())


def _heartbeats(
    timings: Timings, groups: int, members: int, before: _Cpu, after: _Cpu, times: Sequence[float]
) -> Heartbeats:
    seconds = times[-1]
    generator, coordinator, machine = ((now - then) / seconds for now, then in zip(after, before, strict=True))
    return Heartbeats(
        rate=round(len(times) / seconds),
        groups=groups,
        members=members,
        latency=summary(timings.latencies),
        sent_late=summary(timings.late),
        failed=timings.failed,
        coordinator_cores=round(coordinator, 3),
        generator_cores=round(generator, 3),
        other_cores=round(max(0.0, machine - generator - coordinator), 3),
        seconds=list(_by_second(timings)),
    )


def _by_second(timings: Timings) -> Iterator[Second]:
    seconds: dict[int, list[float]] = {}
    for due, latency in zip(timings.due, timings.latencies, strict=True):
        seconds.setdefault(int(due), []).append(latency * 1000)
    for _, latencies in sorted(seconds.items()):
        yield Second(len(latencies), round(percentile(latencies, 50), 1), round(percentile(latencies, 99), 1))


class _Load(NamedTuple):
    """Heartbeats at one rate: first to warm up, then measured."""

    rate: int
    groups: int
    members: int
    warm_up_seconds: float
    seconds: float

    def measure(
        self, beat: Callable[[Sequence[float]], Timings], coordinator_pid: int, meanwhile: list[float] | None = None
    ) -> Heartbeats:
        """``meanwhile`` is given when the measured part began and ended, seconds since the epoch."""
        beat(schedule(self.rate, self.warm_up_seconds, seed=1))
        times = schedule(self.rate, self.seconds, seed=2)
        began, before = time.time(), _Cpu.now(coordinator_pid)
        timings = beat(times)
        if meanwhile is not None:
            meanwhile += [began, time.time()]
        return _heartbeats(timings, self.groups, self.members, before, _Cpu.now(coordinator_pid), times)


def _shuffled(beats: list[Beat]) -> list[Beat]:
    """In an order that has nothing to do with the groups'."""
    random.Random(7).shuffle(beats)
    return beats


def generator_alone(bench: Bench) -> Heartbeats:
    """The load generator against a topic that answers itself: no coordinator, the same client and broker."""
    bench.say(f"the load generator alone: {FULL_RATE:,}/s that answer themselves")
    topic = "bench-echo"
    admin = AdminClient({"bootstrap.servers": bench.broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TOPIC_LIMIT_SECONDS)
    with Events(bench.broker.bootstrap_servers, topic, topic) as events:
        load = _Load(FULL_RATE, 0, 0, 1.0, GENERATOR_SECONDS)
        return load.measure(lambda times: events.beat([echo()], times), bench.broker.pid)


# --------------------------------------------------------------------------------------------------------------
# This job and Spark's defaults


def this_job(bench: Bench) -> Figures:
    """Everything that is asked of a busy coordinator."""
    scale = bench.scale
    with running("ours", bench.broker, bench.folder, LATENCY) as coordinator, bench.events(coordinator) as events:
        bench.say(f"{OURS}: forming {STEADY_GROUPS:,} groups")
        beats = _shuffled(events.beats(events.form_groups(_names("steady", STEADY_GROUPS), 1)))
        steady_load = _Load(STEADY_RATE, STEADY_GROUPS, 1, scale.warm_up_seconds, scale.measured_seconds)
        bench.say(
            f"{OURS}: {STEADY_RATE:,} heartbeats/s for {steady_load.warm_up_seconds:g} + {steady_load.seconds:g} s"
        )
        samples: list[Sample] = []
        measured: list[float] = []
        pid = coordinator.processes.driver
        steady = steady_load.measure(lambda times: events.beat(beats, times, samples=samples), pid, measured)
        way = _way([sample for sample in samples if sample.due >= measured[0]], coordinator.batches(*_pair(measured)))
        formations = [_formed(bench, coordinator, OURS, *size) for size in scale.formations]
        bench.say(f"{OURS}: forming {STEADY_GROUPS:,} groups of {FULL_MEMBERS}")
        beats = _shuffled(events.beats(events.form_groups(_names("full", STEADY_GROUPS), FULL_MEMBERS)))
        full_load = _Load(
            FULL_RATE, STEADY_GROUPS, FULL_MEMBERS, scale.full_warm_up_seconds, scale.full_measured_seconds
        )
        bench.say(f"{OURS}: {FULL_RATE:,} heartbeats/s for {full_load.warm_up_seconds:g} + {full_load.seconds:g} s")
        full = full_load.measure(lambda times: events.beat(beats, times), pid)
        return Figures(
            start_seconds=coordinator.start_seconds, steady=steady, full=full, formations=formations, way=way
        )


def spark_defaults(bench: Bench) -> Figures:
    """The same query with Spark's default settings and pyspark's own worker."""
    scale = bench.scale
    with (
        running("defaults", bench.broker, bench.folder, LATENCY, DEFAULTS_MODULE) as coordinator,
        bench.events(coordinator) as events,
    ):
        formations = [_formed(bench, coordinator, DEFAULTS, *size) for size in scale.formations]
        bench.say(f"{DEFAULTS}: forming {STEADY_GROUPS:,} groups")
        beats = _shuffled(events.beats(events.form_groups(_names("steady", STEADY_GROUPS), 1)))
        load = _Load(STEADY_RATE, STEADY_GROUPS, 1, scale.slow_warm_up_seconds, scale.slow_measured_seconds)
        bench.say(f"{DEFAULTS}: {STEADY_RATE:,} heartbeats/s for {load.warm_up_seconds:g} + {load.seconds:g} s")
        steady = load.measure(lambda times: events.beat(beats, times), coordinator.processes.driver)
        return Figures(start_seconds=coordinator.start_seconds, steady=steady, formations=formations)


def touched(bench: Bench, name: str, settings: dict[str, object]) -> Touched:
    """Bursts of one heartbeat to each of many groups, on a coordinator that has just started."""
    groups = bench.scale.touched_groups
    with (
        running(name, bench.broker, bench.folder, LATENCY | settings) as coordinator,
        bench.events(coordinator) as events,
    ):
        bench.say(f"{name} worker: forming {groups:,} groups")
        beats = events.beats(events.form_groups(_names("touched", groups), 1))
        warm_up, measured = bench.scale.bursts
        bench.say(f"{name} worker: {warm_up} + {measured} bursts of {groups:,} heartbeats")
        seconds = []
        for _ in range(warm_up + measured):
            timings = events.beat(beats, [0.0] * groups)
            if timings.failed:
                raise RuntimeError(f"{timings.failed} of {groups} heartbeats failed")
            seconds.append(round(max(timings.latencies), 3))
    return Touched(groups, seconds[warm_up:])


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}-{number}" for number in range(count)]


def _pair(values: Sequence[float]) -> tuple[float, float]:
    first, last = values
    return first, last


def _formed(bench: Bench, coordinator: Coordinator, name: str, members: int, groups: int) -> Formation:
    bench.say(f"{name}: forming {groups} group(s) of {members}")
    began = time.time()
    servers, prefix = bench.broker.bootstrap_servers, coordinator.topics.prefix
    with CoordinatorClient(servers, topic_prefix=prefix, client_id="bench") as client:
        formation = measure_formation(client, members, groups)
    if coordinator.is_watched:
        # During the delay most batches are empty; those are shorter, and nobody waits for them.
        with_requests = [batch for batch in coordinator.batches(began, time.time()) if batch.report["numInputRows"]]
        return msgspec.structs.replace(formation, batch_ms=median_ms(with_requests))
    return formation


# --------------------------------------------------------------------------------------------------------------
# Where the milliseconds go


def _way(samples: Sequence[Sample], batches: Sequence[Batch]) -> list[Stretch]:
    """A request's way, stretch by stretch: by the broker's clock and the batch that answered it.

    Within the batch, by Spark's own report of its phases.
    """
    if not samples or not batches:
        return []
    to_log, to_batch, in_batch, to_client = [], [], [], []
    for sample in samples:
        taken = [batch for batch in batches if sample.appended <= batch.began <= sample.answered]
        if not taken:
            continue
        batch = taken[-1]
        to_log.append(sample.appended - sample.due)
        to_batch.append(batch.began - sample.appended)
        in_batch.append(sample.answered - batch.began)
        to_client.append(sample.received - sample.answered)
    phase = {
        name: statistics.median(batch.report["durationMs"].get(name, 0) for batch in batches)
        for name in ("latestOffset", "walCommit", "queryPlanning")
    }
    operator = {
        name: statistics.median(batch.report["stateOperators"][0][name] for batch in batches)
        for name in ("allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs")
    }

    def middle(seconds: Sequence[float]) -> float:
        return round(1000 * statistics.median(seconds), 1)

    within = phase["latestOffset"] + phase["walCommit"] + phase["queryPlanning"]
    rest = middle(in_batch) - within - operator["allUpdatesTimeMs"]
    return [
        Stretch("sent and appended", middle(to_log)),
        Stretch("waiting for the batch under way", middle(to_batch)),
        Stretch("offsets asked for", phase["latestOffset"]),
        Stretch("offsets written to the checkpoint", phase["walCommit"]),
        Stretch("query planned", phase["queryPlanning"]),
        Stretch("task sent, records read and sorted, answers written", round(max(0.0, rest), 1)),
        Stretch("groups: state read, Python, state written", operator["allUpdatesTimeMs"]),
        Stretch("fetched by the client", middle(to_client)),
    ]


# --------------------------------------------------------------------------------------------------------------
# A broker's own coordinator


def a_broker(bench: Bench) -> Figures:
    """The coordinator that clients of Kafka use otherwise, in the broker that all of this runs on."""
    scale, servers = bench.scale, bench.broker.bootstrap_servers
    formations = []
    # A new broker makes its offsets topic first.
    bench.say(f"{BROKER}: forming a first group, which is not counted")
    brokers.form_groups(servers, ["broker-first"], 1)
    for members, groups in scale.formations:
        bench.say(f"{BROKER}: forming {groups} group(s) of {members}")
        delay = protocol_delay_ms(members)
        _, seconds = brokers.form_groups(servers, _names(f"broker-{members}", groups), members)
        above = [round(1000 * each - delay, 1) for each in seconds]
        formations.append(Formation(members=members, delay_ms=delay, above_delay_ms=above))
    bench.say(f"{BROKER}: forming {STEADY_GROUPS:,} groups")
    joined, _ = brokers.form_groups(servers, _names("broker-steady", STEADY_GROUPS), 1)
    loads = []
    for rate in (STEADY_RATE, FULL_RATE):
        bench.say(f"{BROKER}: {rate:,} heartbeats/s")
        load = _Load(rate, STEADY_GROUPS, 1, scale.slow_warm_up_seconds, scale.slow_measured_seconds)
        loads.append(load.measure(lambda times: brokers.beat(servers, joined, times), bench.broker.pid))
    return Figures(steady=loads[0], full=loads[1], formations=formations)


# --------------------------------------------------------------------------------------------------------------
# Many groups, and silence


def many_groups(bench: Bench) -> Population:
    """A coordinator without groups, and one with many, that is killed at last."""
    scale = bench.scale
    with running("empty", bench.broker, bench.folder, BALANCED) as coordinator:
        bench.say(f"no groups: settling for {scale.settling_seconds:g} s, then idle for {scale.idle_seconds:g} s")
        empty = idle(coordinator, scale, 0)
    with running("many", bench.broker, bench.folder, BALANCED) as coordinator, bench.events(coordinator) as events:
        bench.say(f"forming {scale.many_groups:,} groups of {MEMBERS_OF_MANY}")
        began = time.monotonic()
        members = events.form_groups(
            _names("many", scale.many_groups),
            MEMBERS_OF_MANY,
            lambda formed: bench.say(f"{formed:,} members have joined"),
        )
        formed_seconds = time.monotonic() - began
        used = {role: memory(pids) for role, pids in coordinator.processes.by_role().items()}
        settling = scale.settling_seconds_of_many
        bench.say(f"{scale.many_groups:,} groups: settling for {settling:g} s, then idle")
        full = idle(coordinator, msgspec.structs.replace(scale, settling_seconds=settling), scale.many_groups)
        bench.say("kill -9, and started again")
        coordinator.kill()
        answer_seconds = _first_answer(coordinator, events, events.beats(members[:1]))
    return Population(
        groups=scale.many_groups,
        formed_seconds=round(formed_seconds, 1),
        memory=used,
        first_answer_seconds=round(answer_seconds, 1),
        idle=full,
        idle_when_empty=empty,
    )


def _first_answer(coordinator: Coordinator, events: Events, beats: list[Beat]) -> float:
    """Seconds from the start of the process to the answer to a heartbeat that was sent while nobody was there."""
    events.send(beats[0])
    began = time.monotonic()
    coordinator.start()
    while not events.answers(0.05):
        if time.monotonic() > began + RESTART_LIMIT_SECONDS:
            raise TimeoutError("a heartbeat was not answered after the restart")
    return time.monotonic() - began


def idle(coordinator: Coordinator, scale: Scale, groups: int) -> Idle:
    """Say nothing, and see what that costs."""
    time.sleep(scale.settling_seconds)
    began, used = time.time(), cpu_seconds(coordinator.processes.driver)
    time.sleep(scale.idle_seconds)
    ended, cores = time.time(), (cpu_seconds(coordinator.processes.driver) - used) / scale.idle_seconds
    batches = coordinator.batches(began, ended)
    # Spark removes what is older than a hundred batches.
    since = batches[-BATCHES_KEPT].began if len(batches) > BATCHES_KEPT else began
    files = sum(since <= file.stat().st_mtime < ended for file in coordinator.checkpoint.rglob("*") if file.is_file())
    return Idle(
        groups=groups,
        coordinator_cores=round(cores, 3),
        batch_ms=median_ms(batches),
        files_per_hour=round(files * 3600 / (ended - since)),
    )


def coordinators(bench: Bench) -> dict[str, Figures]:
    """All that are compared under the same load."""
    ours = this_job(bench)
    return {
        OURS: msgspec.structs.replace(ours, touched=touched(bench, "arrow", {"python-worker": "arrow"})),
        STOCK: Figures(touched=touched(bench, "stock", {"python-worker": "stock"})),
        DEFAULTS: spark_defaults(bench),
        BROKER: a_broker(bench),
    }
