"""What idle groups add to a batch: `python -m tests.bench.stores.idle_groups [--groups N] [--state-store S]`; 4 min.

Three jobs run at the same time: one without groups, one with many that have nothing but a committed offset, and one
with as many in Spark's own map. They take turns with batches: some that find nothing to do, and some with a commit to
one group. So all are equally warm, and the machine has the same speed for all.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich import box
from rich.table import Table

from streaming.job.spark_internals.group_map.compilation import make_group_map_jar
from streaming.job.spark_internals.registry import GROUP_MAP, OFF_VARIABLE
from streaming.job.state_stores import DEFAULT_STATE_STORE
from tests.bench.environment import commit, machine, print_results, write_results
from tests.bench.events import Events
from tests.bench.figures import SMALLEST, Scale
from tests.bench.latency import percentile
from tests.bench.scenarios.job import DEFAULT_PROFILE
from tests.bench.scenarios.loads import Bench, group_names, measuring
from tests.bench.scenarios.silence import empty_batches
from tests.bench.systems.coordinators import SHIPPED_MODULE, Coordinator, running

WARM_UP_SECONDS = 30.0
MEASURED_SECONDS = 20.0
"""Of each kind of batches."""
ONE_GROUP = "one"
FORM_LIMIT_SECONDS = 180.0

NOTHING_TO_DO, COMMIT = "batch that finds nothing to do", "commit to its answer"


class System(NamedTuple):
    """A job that is measured: whether it has many groups, and how it is started."""

    name: str
    has_many: bool
    environment: Mapping[str, str] = MappingProxyType({})
    module: str = SHIPPED_MODULE


NO_GROUPS = System("no groups", has_many=False)
SYSTEMS = (
    NO_GROUPS,
    System("many groups", has_many=True),
    System("many groups, Spark's map", has_many=True, environment={OFF_VARIABLE: GROUP_MAP.name}),
)


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """How long one kind of batch takes in one of the jobs, ms; ``ratio`` is that of the medians to no groups."""

    system: str
    kind: str
    batches: int
    p50_ms: float
    p90_ms: float
    ratio: float


class IdleGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a run."""

    date: str
    commit: str
    machine: dict[str, str]
    groups: int
    state_store: str
    durations: list[Durations]


class _Running(NamedTuple):
    system: System
    coordinator: Coordinator
    events: Events

    def commit_of_each(self, groups: int) -> None:
        commits = self.events.commits(group_names("idle", groups))
        assert not self.events.send_on_schedule(commits, [0.0] * groups, FORM_LIMIT_SECONDS).failed

    def empty_ms(self) -> float:
        return empty_batches(self.coordinator, 1)[0]

    def commit_ms(self) -> float:
        return 1000 * self.events.send_on_schedule(self.events.commits([ONE_GROUP]), [0.0]).latencies[0]


def in_turns(
    jobs: Sequence[_Running], kind: str, measure: Callable[[_Running], float], seconds: float
) -> list[Durations]:
    """Measure a batch of each of the jobs in turn, for so long; the first one has no groups."""
    turns: list[list[float]] = []
    end = time.monotonic() + seconds
    while not turns or time.monotonic() < end:
        turns.append([measure(job) for job in jobs])
    durations = list(zip(*turns, strict=True))
    p50, p90 = zip(*[(percentile(each, 50), percentile(each, 90)) for each in durations], strict=True)
    return [
        Durations(
            system=job.system.name,
            kind=kind,
            batches=len(turns),
            p50_ms=round(p50[place], 1),
            p90_ms=round(p90[place], 1),
            ratio=round(p50[place] / p50[0], 2),
        )
        for place, job in enumerate(jobs)
    ]


def measure(
    bench: Bench, systems: Sequence[System], groups: int, settings: dict[str, object], warm_up: float, seconds: float
) -> list[Durations]:
    """Start the jobs, give them their groups, and measure."""
    jobs = []
    with ExitStack() as stack:
        for number, system in enumerate(systems):
            bench.report(f"starting: {system.name}")
            coordinator = stack.enter_context(
                running(
                    f"job-{number}",
                    bench.broker,
                    bench.folder,
                    settings,
                    system.module,
                    environment=system.environment,
                )
            )
            events = stack.enter_context(bench.events(coordinator))
            jobs.append(_Running(system, coordinator, events))
        bench.report(f"committing an offset of {groups:,} groups")
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda job: job.commit_of_each(groups), [job for job in jobs if job.system.has_many]))
        bench.report(f"warming up for {warm_up:g} s, then {seconds:g} s of each kind of batches")
        in_turns(jobs, NOTHING_TO_DO, _Running.empty_ms, 0.7 * warm_up)
        in_turns(jobs, COMMIT, _Running.commit_ms, 0.3 * warm_up)
        empty = in_turns(jobs, NOTHING_TO_DO, _Running.empty_ms, seconds)
        bench.report(", ".join(f"{each.system}: {each.p50_ms:.0f} ms" for each in empty))
        return empty + in_turns(jobs, COMMIT, _Running.commit_ms, seconds)


def table(figures: IdleGroups) -> Table:
    """The figures for the terminal."""
    shown = Table(title=f"{figures.date}: {figures.groups:,} groups, {figures.state_store}", box=box.SIMPLE_HEAD)
    for heading in ("", "job", "batches", "p50, ms", "p90, ms", "ratio"):
        shown.add_column(heading, justify="left" if heading in {"", "job"} else "right")
    for each in figures.durations:
        shown.add_row(
            each.kind, each.system, str(each.batches), f"{each.p50_ms:.0f}", f"{each.p90_ms:.0f}", f"{each.ratio:.2f}"
        )
    return shown


def main(
    groups: Annotated[int, typer.Option("--groups", help="How many groups are many.")] = Scale().many_groups,
    state_store: Annotated[str, typer.Option("--state-store", help="Where Spark keeps them.")] = DEFAULT_STATE_STORE,
    smallest: Annotated[bool, typer.Option("--smallest", help="Measure a moment: a smoke test.")] = False,
) -> None:
    """Measure batches without groups and with many."""
    date, before, made_from = datetime.now().astimezone(), machine(), commit()
    make_group_map_jar()
    groups, warm_up, seconds = (
        (SMALLEST.many_groups, 1.0, 1.0) if smallest else (groups, WARM_UP_SECONDS, MEASURED_SECONDS)
    )
    # An archive of classes that one of them makes would take a core for a minute.
    settings = {**DEFAULT_PROFILE, "state-store": state_store, "make-class-archive": False}
    with measuring("idle-groups", SMALLEST if smallest else Scale()) as bench:
        durations = measure(bench, SYSTEMS, groups, settings, warm_up, seconds)
    figures = IdleGroups(
        date=date.isoformat(timespec="seconds"),
        commit=made_from,
        machine=before,
        groups=groups,
        state_store=state_store,
        durations=durations,
    )
    print_results(table(figures), write_results("idle-groups", date, figures), width=110)


if __name__ == "__main__":
    typer.run(main)
