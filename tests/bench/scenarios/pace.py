"""The default pace under small and steady loads, and the same job with a fixed trigger interval, as releases before."""

from collections.abc import Sequence

from streaming.job.spark_internals.registry import OFF_VARIABLE, TRIGGER_CLOCK
from tests.bench import figures
from tests.bench.events import Events, PreparedRequest
from tests.bench.figures import Heartbeats
from tests.bench.scenarios.loads import STEADY_RATE, Bench, Load, group_names, shuffled
from tests.bench.systems.coordinators import Coordinator

FIXED_INTERVAL = {OFF_VARIABLE: TRIGGER_CLOCK.name}
"""Environment variables of a job that looks for requests in its trigger interval."""

SMALL_RATE = 20
COMMITTING_GROUPS = 100
HEARTBEAT_MEMBERS = 200


def paced_loads(bench: Bench, name: str, coordinator: Coordinator, events: Events) -> dict[str, Heartbeats]:
    """Measure each load, by what the report calls it."""
    commits = events.commits(group_names("paced", COMMITTING_GROUPS))
    heartbeats = shuffled(events.heartbeats(events.form_groups(group_names("beating", HEARTBEAT_MEMBERS), 1)))
    small: Sequence[tuple[str, int, list[PreparedRequest]]] = (
        (figures.SMALL_COMMITS, SMALL_RATE, commits),
        (figures.SMALL_HEARTBEATS, SMALL_RATE, heartbeats),
        (figures.STEADY_COMMITS, STEADY_RATE, commits),
    )
    measured = {}
    for what, rate, requests in small:
        load = Load(rate, len(requests), 1, bench.scale.paced_warm_up_seconds, bench.scale.paced_seconds)
        bench.report(f"{name}: {what}")
        measured[what] = load.measure(
            lambda times, requests=requests: events.send_on_schedule(requests, times),  # type: ignore[misc]
            coordinator.processes.driver,
        )
    return measured
