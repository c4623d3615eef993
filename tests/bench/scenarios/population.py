"""Many groups that send nothing: memory, the cost of being idle, and the first answer after a kill."""

import time

import msgspec

from tests.bench.events import Events, PreparedRequest
from tests.bench.figures import Population
from tests.bench.scenarios.job import DEFAULT_PROFILE
from tests.bench.scenarios.loads import Bench, group_names
from tests.bench.scenarios.silence import idle
from tests.bench.systems.coordinators import Coordinator, running
from tests.bench.usage import memory

RESTART_LIMIT_SECONDS = 120.0
MEMBERS_OF_MANY = 2


def many_groups(bench: Bench) -> Population:
    """Measure a coordinator without groups, then with many; in the end it is killed."""
    scale = bench.scale
    # What records the progress of batches would take a part of the CPU time of an idle coordinator.
    with (
        running("many", bench.broker, bench.folder, DEFAULT_PROFILE) as coordinator,
        bench.events(coordinator) as events,
    ):
        bench.report(f"no groups: settling for {scale.settling_seconds:g} s, then idle for {scale.idle_seconds:g} s")
        empty = idle(coordinator, scale, 0)
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
