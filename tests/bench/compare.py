"""Compare this checkout with another one on the same machine: `python -m tests.bench.compare --against <checkout>`.

The coordinator runs with the code of each checkout; broker, load generator and Python environment are this checkout's.
Both coordinators are started and warmed up first. Then they are measured alternately, in short rounds, during which the
other one is stopped (SIGSTOP), and the ratio of a figure is the median of the ratios of its rounds: the speed of a
shared machine changes by more within minutes than two versions differ. The order changes with every round. Metrics are
enabled. It takes 13 minutes. Where "everything else" used more CPU in one checkout's rounds than in the other's,
another process disturbed the comparison.
"""

import math
import signal
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich import box
from rich.table import Table

from streaming.client import CoordinatorClient
from streaming.job.session import LOCAL_EXECUTOR
from tests.bench.environment import ROOT, commit, machine, print_results, write_results
from tests.bench.events import Events, Membership, PreparedRequest
from tests.bench.figures import Scale
from tests.bench.latency import Timings
from tests.bench.scenarios.formation import measure_formation
from tests.bench.scenarios.job import LATENCY_PROFILE, burst_seconds
from tests.bench.scenarios.loads import (
    FULL_RATE,
    STEADY_GROUPS,
    STEADY_RATE,
    Bench,
    Load,
    group_names,
    measuring,
    shuffled,
)
from tests.bench.scenarios.population import seconds_to_first_answer
from tests.bench.systems.coordinators import BenchFailed, Coordinator, running
from tests.support.processes import process_tree, signal_each

WARM_UP_BURSTS = 2


class Extent(NamedTuple):
    """How much is measured.

    loads: heartbeats of a round, and how many rounds each checkout has. formations: members of a group, and how many
    such groups.
    """

    # After 25 s, Java's compilers still take 60 of the 160 ms of CPU time of a batch, and differently in each run.
    warm_ups: Sequence[Load] = (
        Load(STEADY_RATE, STEADY_GROUPS, 1, 50.0, 10.0),
        Load(FULL_RATE, STEADY_GROUPS, 1, 5.0, 5.0),
    )
    loads: Sequence[tuple[Load, int]] = (
        (Load(STEADY_RATE, STEADY_GROUPS, 1, 2.0, 8.0), 10),
        (Load(FULL_RATE, STEADY_GROUPS, 1, 2.0, 8.0), 6),
    )
    formations: tuple[int, int] = (10, 4)
    formation_rounds: int = 3
    burst_rounds: int = 3
    touched_groups: int = 10_000
    kill_rounds: int = 3


SMALLEST = Extent(
    warm_ups=[Load(STEADY_RATE, 20, 1, 0.2, 0.5)],
    loads=[(Load(STEADY_RATE, 20, 1, 0.2, 0.5), 1)],
    formations=(2, 1),
    formation_rounds=1,
    burst_rounds=1,
    touched_groups=20,
    kill_rounds=1,
)
"""Shows that everything can be compared; the ratios say nothing."""

HIGHER_IS_BETTER = frozenset({"groups touched per second"})

Figures = dict[str, float]
Measure = Callable[["Side"], Figures]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of every round by name: of this checkout, and of the other one."""

    date: str
    machine: dict[str, str]
    commits: tuple[str, str]
    this: dict[str, list[float]]
    other: dict[str, list[float]]

    def rows(self) -> Iterator[tuple[str, float, float, float]]:
        """Return for each figure its median here, its median in the other checkout, and the median of the ratios."""
        for name, here in self.this.items():
            there = self.other[name]
            ratios = [this / other if other else math.nan for this, other in zip(here, there, strict=True)]
            yield name, statistics.median(here), statistics.median(there), statistics.median(ratios)


class Side(NamedTuple):
    """The coordinator of one checkout, with its load generator and what was measured of it."""

    coordinator: Coordinator
    events: Events
    heartbeats: list[PreparedRequest]
    touched: list[Membership]
    """Members of the groups that bursts touch; none before the first burst."""
    figures: dict[str, list[float]]

    def note(self, figures: Figures) -> None:
        """Keep the figures of a round."""
        for name, value in figures.items():
            self.figures.setdefault(name, []).append(value)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the coordinator."""
        signal_each(process_tree(self.coordinator.pid), number)


@contextmanager
def warm(
    bench: Bench, name: str, started: AbstractContextManager[Coordinator], warm_ups: Sequence[Load]
) -> Iterator[Side]:
    """Start a coordinator, warm it up with these loads on the groups of the first, and stop it for its rounds."""
    with started as coordinator, bench.events(coordinator) as events:
        bench.report(f"{name}: warming up")
        members = events.form_groups(group_names("steady", warm_ups[0].groups), 1)
        side = Side(coordinator, events, shuffled(events.heartbeats(members)), [], {})
        side.note({"start to ready, s": coordinator.start_seconds})
        for load in warm_ups:
            loaded(load)(side)
        side.signal(signal.SIGSTOP)
        try:
            yield side
        finally:
            side.signal(signal.SIGCONT)


def measure_alternately(sides: Sequence[Side], measure: Measure, rounds: int) -> None:
    """Measure the sides alternately; the others are stopped meanwhile."""
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            side.signal(signal.SIGCONT)
            side.note(measure(side))
            side.signal(signal.SIGSTOP)


def loaded(load: Load) -> Measure:
    """Heartbeats at a fixed rate."""

    def measure(side: Side) -> Figures:
        def send(times: Sequence[float]) -> Timings:
            return side.events.send_on_schedule(side.heartbeats, times)

        measured = load.measure(send, side.coordinator.processes.driver)
        if measured.failed:
            raise BenchFailed(f"{measured.failed} of {load} failed")
        rate = f"{load.rate:,} heartbeats/s"
        return {
            f"{rate}, p50, ms": measured.latency.p50_ms,
            f"{rate}, p99, ms": measured.latency.p99_ms,
            f"{rate}, CPU of the coordinator, cores": measured.coordinator_cores,
            f"{rate}, CPU of everything else, cores": measured.other_cores,
        }

    return measure


def formation(bench: Bench, members: int, groups: int) -> Measure:
    """Groups that form."""

    def measure(side: Side) -> Figures:
        servers, prefix = bench.broker.bootstrap_servers, side.coordinator.topics.prefix
        with CoordinatorClient(servers, topic_prefix=prefix, client_id="bench") as client:
            median_ms = measure_formation(client, members, groups).median_ms
        return {f"{members} members from first join to Stable, above the delay, ms": median_ms}

    return measure


def burst(groups: int) -> Measure:
    """A heartbeat of each of many groups at once. The groups are formed in the first round."""

    def measure(side: Side) -> Figures:
        if not side.touched:
            side.touched.extend(side.events.form_groups(group_names("touched", groups), 1))
        *_, seconds = burst_seconds(side.events, side.touched, WARM_UP_BURSTS + 1)
        return {"groups touched per second": groups / seconds}

    return measure


def kill(side: Side) -> Figures:
    """A kill -9, and a new start."""
    side.coordinator.kill()
    seconds = seconds_to_first_answer(side.coordinator, side.events, side.heartbeats[0])
    return {"kill -9 to first answer, s": seconds}


def compare(bench: Bench, checkouts: Sequence[tuple[str, Path]], extent: Extent) -> list[dict[str, list[float]]]:
    """Measure the coordinators of the checkouts alternately; returns the figures of each."""
    # While a side is stopped, its executor sends no heartbeat. An older checkout has Spark's default of two minutes.
    settings = LATENCY_PROFILE | {"metrics-port": 0} | LOCAL_EXECUTOR
    with ExitStack() as stack:
        sides = []
        for name, checkout in checkouts:
            started = running(name, bench.broker, bench.folder, settings, checkout=checkout)
            sides.append(stack.enter_context(warm(bench, name, started, extent.warm_ups)))
        for load, rounds in extent.loads:
            bench.report(f"{rounds} rounds of {load}")
            measure_alternately(sides, loaded(load), rounds)
        bench.report(f"groups of {extent.formations[0]}")
        measure_alternately(sides, formation(bench, *extent.formations), extent.formation_rounds)
        bench.report(f"bursts to {extent.touched_groups:,} groups")
        measure_alternately(sides, burst(extent.touched_groups), extent.burst_rounds)
        bench.report("kill -9, and a new start")
        measure_alternately(sides, kill, extent.kill_rounds)
        return [side.figures for side in sides]


def table(comparison: Comparison) -> Table:
    """Return the ratios for the terminal."""
    this, other = comparison.commits
    shown = Table(title=f"{comparison.date}, profile latency", box=box.SIMPLE_HEAD)
    for heading in ("", f"this, {this}", f"other, {other}", "ratio", "better"):
        shown.add_column(heading, justify="right" if heading and heading != "better" else "left")
    for name, here, there, ratio in comparison.rows():
        better = "higher" if name in HIGHER_IS_BETTER else "lower"
        shown.add_row(name, f"{here:,.2f}", f"{there:,.2f}", f"{ratio:.2f}", better)
    return shown


def main(
    against: Annotated[Path, typer.Option("--against", help="The root of the other checkout.")],
    smallest: Annotated[bool, typer.Option("--smallest", help="Measure a moment of everything: a smoke test.")] = False,
) -> None:
    """Measure the coordinators of this and of another checkout alternately, and print the ratios."""
    other = against.resolve()
    if not (other / "streaming").is_dir():
        raise typer.BadParameter(f"{other} is not a checkout of this project: it has no folder streaming")
    date, before = datetime.now().astimezone(), machine()
    with measuring("compare", Scale()) as bench:
        here, there = compare(bench, (("this", ROOT), ("other", other)), SMALLEST if smallest else Extent())
    comparison = Comparison(
        date=date.isoformat(timespec="seconds"),
        machine=before,
        commits=(commit(ROOT), commit(other)),
        this=here,
        other=there,
    )
    print_results(table(comparison), write_results("compare", date, comparison), width=130)


if __name__ == "__main__":
    typer.run(main)
