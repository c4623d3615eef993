"""The systems that run the coordinator's step on one of Spark's operators, and the measurement of them alternately."""

import math
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import NamedTuple

import msgspec
from rich import box
from rich.table import Table

from tests.bench.compare import Measure, Side, loaded, measure_alternately, warm
from tests.bench.events import Events, Membership
from tests.bench.operators import transform_with_state
from tests.bench.scenarios.job import LATENCY_PROFILE
from tests.bench.scenarios.loads import Bench, Load, group_names
from tests.bench.systems.coordinators import SHIPPED_MODULE, BenchFailed, running
from tests.bench.usage import cpu_time

GROUPS = 200
RATES = (20, 200)
BACKLOG_LIMIT_SECONDS = 300.0
BACKLOG_FIGURE = "requests/s"

SETTINGS: dict[str, object] = {**LATENCY_PROFILE, "state-store": "rocksdb", "metrics-port": 0}


class System(NamedTuple):
    """A way to run the step: the module that starts the job, and what differs from the settings of all."""

    module: str
    settings: Mapping[str, object]
    environment: Mapping[str, str]


def _transform(form: transform_with_state.Form) -> System:
    environment = {transform_with_state.VARIABLE: form}
    return System(transform_with_state.__name__, transform_with_state.OPTIONS, environment)


SYSTEMS: Mapping[str, System] = {
    "arrow": System(SHIPPED_MODULE, {"python-worker": "arrow"}, {}),
    "stock": System(SHIPPED_MODULE, {"python-worker": "stock"}, {}),
    "pandas": _transform("pandas"),
    "rows": _transform("rows"),
}
HEADINGS = {
    "arrow": "applyInPandasWithState, Arrow-native worker",
    "stock": "applyInPandasWithState, pyspark's worker",
    "pandas": "transformWithStateInPandas",
    "rows": "transformWithState",
}


class Extent(NamedTuple):
    """How much is measured. A round of a load has a warm-up of its own; a backlog's first round is left out."""

    warm_up_seconds: float = 40.0
    rounds: int = 3
    seconds: float = 15.0
    backlog: int = 2_000
    backlog_groups: int = 1_000
    idle_seconds: float = 20.0


SMALLEST = Extent(warm_up_seconds=0.5, rounds=1, seconds=0.5, backlog=20, backlog_groups=5, idle_seconds=0.5)
"""Shows that everything can be measured; the figures say nothing."""


class Operators(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of every round, by system and name."""

    date: str
    commit: str
    machine: dict[str, str]
    versions: dict[str, str]
    figures: dict[str, dict[str, list[float]]]

    def rows(self) -> Iterator[tuple[str, list[float], list[float]]]:
        """Return for each figure the medians of the systems, and the medians of their ratios to the first."""
        first, *_ = self.figures.values()
        for name, ours in first.items():
            rounds = [figures[name] for figures in self.figures.values()]
            ratios = [
                statistics.median(one / other if other else math.nan for one, other in zip(each, ours, strict=True))
                for each in rounds
            ]
            yield name, [statistics.median(each) for each in rounds], ratios


def backlog(extent: Extent) -> Measure:
    """Heartbeats of many groups at once, several of each. The groups are formed in the first round."""

    def measure(side: Side) -> dict[str, float]:
        if not side.touched:
            side.touched.extend(side.events.form_groups(group_names("touched", extent.backlog_groups), 1))
        seconds = _drain_seconds(side.events, side.touched, extent.backlog)
        name = f"{extent.backlog:,} requests to {extent.backlog_groups:,} groups, {BACKLOG_FIGURE}"
        return {name: extent.backlog / seconds}

    return measure


def _drain_seconds(events: Events, members: list[Membership], requests: int) -> float:
    timings = events.send_on_schedule(events.heartbeats(members), [0.0] * requests, BACKLOG_LIMIT_SECONDS)
    if timings.failed:
        raise BenchFailed(f"{timings.failed} of {requests} requests failed")
    return max(timings.latencies)


def idle(extent: Extent) -> Measure:
    """Silence."""

    def measure(side: Side) -> dict[str, float]:
        coordinator = cpu_time(side.coordinator.processes.driver)
        time.sleep(extent.idle_seconds / 4)
        before = coordinator.used()
        time.sleep(extent.idle_seconds)
        return {"idle, CPU of the coordinator, cores": (coordinator.used() - before) / extent.idle_seconds}

    return measure


def measure(bench: Bench, systems: Mapping[str, System], extent: Extent) -> dict[str, dict[str, list[float]]]:
    """Measure the systems alternately; returns the figures of each round by system."""
    warm_ups = [Load(rate, GROUPS, 1, extent.warm_up_seconds / 2, 2.0) for rate in RATES]
    with ExitStack() as stack:
        sides = []
        for name, (module, settings, environment) in systems.items():
            started = running(
                name, bench.broker, bench.folder, {**SETTINGS, **settings}, module, environment=environment
            )
            side = stack.enter_context(warm(bench, name, started, warm_ups))
            # The figures of the warm-up are none of a round.
            side.figures.clear()
            sides.append(side)
        for rate in RATES:
            load = Load(rate, GROUPS, 1, 2.0, extent.seconds)
            bench.report(f"{extent.rounds} rounds of {load}")
            measure_alternately(sides, loaded(load), extent.rounds)
        bench.report(f"1 + {extent.rounds} backlogs of {extent.backlog:,} requests")
        measure_alternately(sides, backlog(extent), 1 + extent.rounds)
        for side in sides:
            for name in [name for name in side.figures if name.endswith(BACKLOG_FIGURE)]:
                del side.figures[name][0]
        bench.report("silence")
        measure_alternately(sides, idle(extent), 1)
        return {name: side.figures for name, side in zip(systems, sides, strict=True)}


def table(operators: Operators) -> Table:
    """Return the medians for the terminal, each with its ratio to the first system."""
    shown = Table(title=f"{operators.date}, commit {operators.commit}", box=box.SIMPLE_HEAD)
    shown.add_column("")
    for name in operators.figures:
        shown.add_column(HEADINGS[name], justify="right")
    for name, medians, ratios in operators.rows():
        cells = [f"{median:,.2f} ({ratio:.2f}x)" for median, ratio in zip(medians, ratios, strict=True)]
        shown.add_row(name, *cells)
    return shown
