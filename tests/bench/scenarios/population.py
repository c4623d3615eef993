"""Many groups that send nothing: memory, idle batches, and the first answer after a kill."""

import time

import msgspec

from tests.bench.events import Events, PreparedRequest
from tests.bench.figures import Idle, Population, Scale
from tests.bench.scenarios.job import BALANCED_PROFILE
from tests.bench.scenarios.loads import Bench, group_names
from tests.bench.systems.coordinators import Coordinator, median_ms, running
from tests.bench.usage import cpu_seconds, memory

BATCHES_KEPT = 50
"""Files of at least this many batches are still in the checkpoint: Spark removes those older than a hundred."""

RESTART_LIMIT_SECONDS = 120.0
MEMBERS_OF_MANY = 2


def many_groups(bench: Bench) -> Population:
    """Measure a coordinator without groups, and one with many groups, which is killed in the end."""
    scale = bench.scale
    with running("empty", bench.broker, bench.folder, BALANCED_PROFILE) as coordinator:
        bench.report(f"no groups: settling for {scale.settling_seconds:g} s, then idle for {scale.idle_seconds:g} s")
        empty = idle(coordinator, scale, 0)
    with (
        running("many", bench.broker, bench.folder, BALANCED_PROFILE) as coordinator,
        bench.events(coordinator) as events,
    ):
        bench.report(f"forming {scale.many_groups:,} groups of {MEMBERS_OF_MANY}")
        began = time.monotonic()
        members = events.form_groups(
            group_names("many", scale.many_groups),
            MEMBERS_OF_MANY,
            lambda joined: bench.report(f"{joined:,} members have joined"),
        )
        formed_seconds = time.monotonic() - began
        used = {role: memory(pids) for role, pids in coordinator.processes.by_role().items()}
        settling = scale.settling_seconds_of_many
        bench.report(f"{scale.many_groups:,} groups: settling for {settling:g} s, then idle")
        with_groups = idle(coordinator, msgspec.structs.replace(scale, settling_seconds=settling), scale.many_groups)
        bench.report("kill -9, and a new start")
        coordinator.kill()
        answer_seconds = seconds_to_first_answer(coordinator, events, events.heartbeats(members[:1])[0])
    return Population(
        groups=scale.many_groups,
        formed_seconds=round(formed_seconds, 1),
        memory=used,
        first_answer_seconds=round(answer_seconds, 1),
        idle=with_groups,
        idle_when_empty=empty,
    )


def seconds_to_first_answer(coordinator: Coordinator, events: Events, request: PreparedRequest) -> float:
    """Append a request, start the killed coordinator, and return the seconds from its start to the response."""
    events.send(request)
    began = time.monotonic()
    coordinator.start()
    while not events.responses(0.05):
        if time.monotonic() > began + RESTART_LIMIT_SECONDS:
            raise TimeoutError("the restarted coordinator did not answer a heartbeat")
    return time.monotonic() - began


def idle(coordinator: Coordinator, scale: Scale, groups: int) -> Idle:
    """Send nothing, and measure the CPU time, the batches and the files of the checkpoint."""
    time.sleep(scale.settling_seconds)
    began, used = time.time(), cpu_seconds(coordinator.processes.driver)
    time.sleep(scale.idle_seconds)
    ended, cores = time.time(), (cpu_seconds(coordinator.processes.driver) - used) / scale.idle_seconds
    batches = coordinator.batches(began, ended)
    since = batches[-BATCHES_KEPT].began if len(batches) > BATCHES_KEPT else began
    files = sum(since <= file.stat().st_mtime < ended for file in coordinator.checkpoint.rglob("*") if file.is_file())
    return Idle(
        groups=groups,
        coordinator_cores=round(cores, 3),
        batch_ms=median_ms(batches),
        files_per_hour=round(files * 3600 / (ended - since)),
    )
