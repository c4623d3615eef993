"""Compare this checkout with another one on the same machine: `python -m tests.bench.compare --against <checkout>`.

The coordinator runs with the code of each checkout in turn; broker, load generator and Python environment are this
checkout's. The order changes with every round (this, other; other, this), so that a drift of the machine's speed
favours neither. Metrics are enabled. Two rounds take twelve minutes. Where "everything else" used more CPU in one
checkout's turn than in the other's, another process disturbed the comparison.
"""

import math
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from streaming.client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from tests.bench.environment import RESULTS, ROOT, commit, machine
from tests.bench.events import Events, PreparedRequest
from tests.bench.figures import Scale
from tests.bench.scenarios.formation import measure_formation
from tests.bench.scenarios.job import LATENCY_PROFILE, burst_seconds
from tests.bench.scenarios.loads import FULL_RATE, STEADY_GROUPS, STEADY_RATE, Bench, Load, group_names, shuffled
from tests.bench.scenarios.population import seconds_to_first_answer
from tests.bench.systems.coordinators import SHIPPED_MODULE, BenchFailed, Coordinator, running

TOUCHED_GROUPS = 10_000
WARM_UP_BURSTS, MEASURED_BURSTS = 2, 3
# After 25 s, Java's compilers still take 60 of the 160 ms of CPU time of a batch, and differently in each run.
LOADS = (Load(STEADY_RATE, STEADY_GROUPS, 1, 60.0, 20.0), Load(FULL_RATE, STEADY_GROUPS, 1, 10.0, 20.0))
FORMATIONS = (10, 4)
"""Members of a group, and how many such groups."""

HIGHER_IS_BETTER = frozenset({"groups touched per second"})

RoundFigures = dict[str, float]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of every round: of this checkout, and of the other one."""

    date: str
    machine: dict[str, str]
    commits: tuple[str, str]
    this: list[RoundFigures]
    other: list[RoundFigures]

    def rows(self) -> Iterator[tuple[str, float, float, float]]:
        """Return for each figure its median here, its median in the other checkout, and their ratio."""
        for name in self.this[0]:
            this, other = (statistics.median(figures[name] for figures in side) for side in (self.this, self.other))
            yield name, this, other, this / other if other else math.nan


def measure(bench: Bench, name: str, checkout: Path) -> RoundFigures:
    """Measure the coordinator of one checkout, from its start to its first answer after a kill."""
    settings = LATENCY_PROFILE | {"metrics-port": 0}
    with (
        running(name, bench.broker, bench.folder, settings, SHIPPED_MODULE, checkout) as coordinator,
        bench.events(coordinator) as events,
    ):
        figures = {"start to ready, s": coordinator.start_seconds}
        bench.report(f"{name}: {STEADY_RATE:,} and {FULL_RATE:,} heartbeats/s")
        members = events.form_groups(group_names("steady", STEADY_GROUPS), 1)
        heartbeats = shuffled(events.heartbeats(members))
        for load in LOADS:
            figures |= _loaded(coordinator, events, heartbeats, load)
        bench.report(f"{name}: groups of {FORMATIONS[0]}")
        figures["10 members from first join to Stable, above the delay, ms"] = _formation(bench, coordinator)
        bench.report(f"{name}: bursts to {TOUCHED_GROUPS:,} groups")
        touched = events.form_groups(group_names("touched", TOUCHED_GROUPS), 1)
        seconds = burst_seconds(events, touched, WARM_UP_BURSTS + MEASURED_BURSTS)[WARM_UP_BURSTS:]
        figures["groups touched per second"] = TOUCHED_GROUPS / statistics.median(seconds)
        bench.report(f"{name}: kill -9, and a new start")
        coordinator.kill()
        figures["kill -9 to first answer, s"] = seconds_to_first_answer(coordinator, events, heartbeats[0])
    return figures


def _loaded(coordinator: Coordinator, events: Events, heartbeats: list[PreparedRequest], load: Load) -> RoundFigures:
    measured = load.measure(lambda times: events.send_on_schedule(heartbeats, times), coordinator.processes.driver)
    if measured.failed:
        raise BenchFailed(f"{measured.failed} of {load} failed")
    rate = f"{load.rate:,} heartbeats/s"
    return {
        f"{rate}, p50, ms": measured.latency.p50_ms,
        f"{rate}, p99, ms": measured.latency.p99_ms,
        f"{rate}, CPU of the coordinator, cores": measured.coordinator_cores,
        f"{rate}, CPU of everything else, cores": measured.other_cores,
    }


def _formation(bench: Bench, coordinator: Coordinator) -> float:
    servers, prefix = bench.broker.bootstrap_servers, coordinator.topics.prefix
    with CoordinatorClient(servers, topic_prefix=prefix, client_id="bench") as client:
        return measure_formation(client, *FORMATIONS).median_ms


def table(comparison: Comparison) -> Table:
    """Return the ratios for the terminal."""
    this, other = comparison.commits
    shown = Table(title=f"{comparison.date}, {len(comparison.this)} rounds, profile latency", box=box.SIMPLE_HEAD)
    for heading in ("", f"this, {this}", f"other, {other}", "ratio", "better"):
        shown.add_column(heading, justify="right" if heading and heading != "better" else "left")
    for name, here, there, ratio in comparison.rows():
        better = "higher" if name in HIGHER_IS_BETTER else "lower"
        shown.add_row(name, f"{here:,.2f}", f"{there:,.2f}", f"{ratio:.2f}", better)
    return shown


def main(
    against: Annotated[Path, typer.Option("--against", help="The root of the other checkout.")],
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often each checkout is measured.")] = 2,
) -> None:
    """Measure the coordinators of this and of another checkout in turns, and print the ratios."""
    other = against.resolve()
    if not (other / "streaming").is_dir():
        raise typer.BadParameter(f"{other} is not a checkout of this project: it has no folder streaming")
    console = Console(stderr=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()

    def report(activity: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:5.0f}s[/dim]  {activity}", highlight=False)

    date, before = datetime.now().astimezone(), machine()
    sides: dict[str, list[RoundFigures]] = {"this": [], "other": []}
    with (
        tempfile.TemporaryDirectory(prefix="group-coordinator-compare-") as folder,
        EmbeddedBroker(data_dir=Path(folder) / "kafka") as broker,
    ):
        bench = Bench(broker, Path(folder), Scale(), report)
        for number in range(rounds):
            order = [("this", ROOT), ("other", other)]
            for name, checkout in order if number % 2 == 0 else reversed(order):
                sides[name].append(measure(bench, f"{name}-{number + 1}", checkout))
    comparison = Comparison(
        date=date.isoformat(timespec="seconds"), machine=before, commits=(commit(ROOT), commit(other)), **sides
    )
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / date.strftime("compare-%Y%m%d-%H%M%S.json")
    file.write_bytes(msgspec.json.format(msgspec.json.encode(comparison), indent=2) + b"\n")
    Console(width=None if sys.stdout.isatty() else 130).print(table(comparison))
    console.print(f"wrote {file}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    typer.run(main)
