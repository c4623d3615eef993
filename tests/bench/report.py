"""The figures as tables: goals beside figures, for the terminal and as Markdown."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rich import box
from rich.table import Table

from tests.bench.figures import (
    BROKER,
    DEFAULT,
    FIXED,
    LATENCY,
    SMALL_COMMITS,
    SMALL_HEARTBEATS,
    SPARK_DEFAULTS,
    STEADY_COMMITS,
    STOCK_WORKER,
    Figures,
    FirstMinute,
    Heartbeats,
    LogicFigure,
    Measurement,
    Memory,
    Population,
)

COLUMNS = (DEFAULT, FIXED, LATENCY, SPARK_DEFAULTS, BROKER)
HEADINGS = ("", "goal", *COLUMNS, "")
FIRST_MINUTE_HEADINGS = ("seconds since ready", "p50", "p99")
BATCHES_TO_STABLE = 5
FORMATION_WITH_GOAL = 10
"""The number of members of the group whose formation has a goal."""

MET, MISSED = "met", "missed"


class Row(NamedTuple):
    """A row of the table, as text. ``cells`` has a figure for each of :data:`COLUMNS`; ``verdict`` needs a goal."""

    name: str
    cells: tuple[str, ...]
    goal: str = ""
    verdict: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The row as the table shows it."""
        return (self.name, self.goal, *self.cells, self.verdict)


class Section(NamedTuple):
    """Rows of the table under a common title."""

    title: str
    rows: list[Row]


def sections(measured: Measurement) -> Iterator[Section]:
    """Return the sections of the main table."""
    of = measured.coordinators
    yield Section("Goals", [*_pace_goals(of), *_goals(measured)])
    for what in of[DEFAULT].paced:
        yield Section(what, list(_paced_rows({name: of[name].paced.get(what) for name in (DEFAULT, FIXED)})))
    yield Section(_title(of[LATENCY].steady), list(_load_rows({name: of[name].steady for name in COLUMNS})))
    yield Section(_title(of[LATENCY].full), list(_load_rows({name: of[name].full for name in COLUMNS})))
    yield Section("First join to Stable, above the initial delay", list(_formation_rows(of)))
    yield Section("Many groups", list(_population_rows(measured.population)))
    yield Section("The protocol alone, in one process", list(map(_logic_row, measured.logic)))


def _pace_goals(of: Mapping[str, Figures]) -> Iterator[Row]:
    default, fixed = of[DEFAULT], of[FIXED]
    for what in (SMALL_COMMITS, STEADY_COMMITS):
        load = default.paced[what]
        yield _goal(f"{what}, p50", DEFAULT, load.latency.p50_ms, 100.0, _ms, load)
        yield _goal(f"{what}, p99", DEFAULT, load.latency.p99_ms, 250.0, _ms, load)
    ratio = default.paced[SMALL_HEARTBEATS].coordinator_cores / (fixed.paced[SMALL_HEARTBEATS].coordinator_cores or 1.0)
    name = f"CPU with {SMALL_HEARTBEATS}, relative to a fixed interval"
    yield _goal(name, DEFAULT, ratio, 1.0, lambda value: f"{value:.2f}x")
    if default.first_minute is not None:
        begun = default.first_minute.relative_start()
        yield _goal("p50 of the first 15 s, relative to later", DEFAULT, begun, 2.0, lambda value: f"{value:.1f}x")
    formation = default.formation(FORMATION_WITH_GOAL)
    if formation is not None:
        name = "10 members from first join to Stable, above the delay"
        yield _goal(name, DEFAULT, formation.median_ms, 250.0, _ms)


def _paced_rows(loads: Mapping[str, Heartbeats | None]) -> Iterator[Row]:
    def row(name: str, text: Callable[[Heartbeats], str]) -> Row:
        return Row(name, _cells({column: text(load) for column, load in loads.items() if load is not None}))

    yield row("request to response, p50", lambda load: _ms(load.latency.p50_ms))
    yield row("request to response, p99", lambda load: _ms(load.latency.p99_ms))
    yield row("failed requests", lambda load: f"{load.failed:,}")
    yield row("CPU of the coordinator", lambda load: _cores(load.coordinator_cores))


def _goals(measured: Measurement) -> Iterator[Row]:
    of, population = measured.coordinators, measured.population
    latency = of[LATENCY]
    assert latency.steady is not None
    assert latency.full is not None
    steady = "1,000 heartbeats/s over 1,000 groups"
    yield _goal(f"{steady}, p50", LATENCY, latency.steady.latency.p50_ms, 100.0, _ms, latency.steady)
    yield _goal(f"{steady}, p99", LATENCY, latency.steady.latency.p99_ms, 250.0, _ms, latency.steady)
    full = f"10,000 heartbeats/s over 1,000 groups of 10 for {len(latency.full.seconds)} s"
    yield _goal(f"{full}, p99", LATENCY, latency.full.latency.p99_ms, 500.0, _ms, latency.full)
    stock = of[STOCK_WORKER].touched
    if latency.touched is not None and stock is not None:
        ratio = latency.touched.per_second / stock.per_second
        cells = _cells({LATENCY: f"{ratio:.1f}x"})
        yield Row("groups touched per second, relative to pyspark's worker", cells, ">= 8x", _verdict(ratio >= 8))
        yield Row("groups touched per second", _cells({LATENCY: f"{latency.touched.per_second:,.0f}"}))
        yield Row("groups touched per second, pyspark's worker", _cells({LATENCY: f"{stock.per_second:,.0f}"}))
    idle, empty = population.idle, population.idle_when_empty
    ratio = idle.batch_ms / empty.batch_ms if empty.batch_ms else 0.0
    groups = f"with {population.groups:,} groups"
    yield _goal(
        f"batch that finds nothing to do {groups}, relative to no groups",
        DEFAULT,
        ratio,
        1.3,
        lambda value: f"{value:.2f}x",
    )
    formation = latency.formation(FORMATION_WITH_GOAL)
    if formation is not None:
        name = "10 members from first join to Stable, above the delay"
        yield _goal(name, LATENCY, formation.median_ms, 600.0, _ms)
        batches = formation.median_ms / formation.batch_ms if formation.batch_ms else 0.0
        yield _goal("the same in batches", LATENCY, batches, BATCHES_TO_STABLE, lambda count: f"{count:.1f}")
    first_answer = population.first_answer_seconds
    yield _goal(f"kill -9 to first answer {groups}", DEFAULT, first_answer, 20.0, lambda value: f"{value:.1f} s")
    for silent, name, limit in ((empty, "no groups", 0.03), (idle, groups, 0.05)):
        yield _goal(
            f"CPU when idle, {name}", DEFAULT, silent.coordinator_cores, limit, lambda value: f"{value:.3f} cores"
        )
        for what, count in (("batches", silent.batches), ("files written", silent.files)):
            text = f"{what} in {silent.seconds:g} idle s, {name}"
            yield Row(text, _cells({DEFAULT: str(count)}), "0", _verdict(count == 0))
    memory = population.pss_mib / 1024
    yield _goal(f"memory {groups} of 2 members", DEFAULT, memory, 2.5, lambda value: f"{value:.2f} GiB")


def _goal(
    name: str, column: str, value: float, limit: float, text: Callable[[float], str], load: Heartbeats | None = None
) -> Row:
    """A figure that should not exceed a limit. Without a response, or with a failed request, the goal is missed."""
    is_met = 0 < value <= limit and (load is None or not load.failed)
    return Row(name, _cells({column: text(value)}), f"<= {text(limit)}", _verdict(is_met))


def _cells(texts: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(texts.get(column, "") for column in COLUMNS)


def _verdict(is_met: bool) -> str:
    return MET if is_met else MISSED


def _title(load: Heartbeats | None) -> str:
    assert load is not None
    members = f" of {load.members}" if load.members > 1 else ""
    return f"{load.rate:,} heartbeats/s over {load.groups:,} groups{members}"


def _load_rows(loads: Mapping[str, Heartbeats | None]) -> Iterator[Row]:
    def row(name: str, text: Callable[[Heartbeats], str]) -> Row:
        return Row(name, _cells({column: text(load) for column, load in loads.items() if load is not None}))

    yield row("measured for", lambda load: f"{len(load.seconds)} s")
    yield row("request to response, p50", lambda load: _ms(load.latency.p50_ms))
    yield row("request to response, p90", lambda load: _ms(load.latency.p90_ms))
    yield row("request to response, p99", lambda load: _ms(load.latency.p99_ms))
    yield row("p50 of the first second", lambda load: _ms(load.seconds[0].p50_ms))
    yield row("p50 of the last second", lambda load: _ms(load.seconds[-1].p50_ms))
    yield row("responses", lambda load: f"{load.latency.count:,}")
    yield row("failed requests", lambda load: f"{load.failed:,}")
    yield row("CPU of the coordinator", lambda load: _cores(load.coordinator_cores))
    yield row("CPU of the load generator", lambda load: _cores(load.generator_cores))
    yield row("CPU of everything else", lambda load: _cores(load.other_cores))
    yield row("delay of the load generator, p99", lambda load: _ms(load.sent_late.p99_ms))


def _formation_rows(of: Mapping[str, Figures]) -> Iterator[Row]:
    for formation in of[LATENCY].formations:
        size = formation.members
        members = "1 member" if size == 1 else f"{size} members"
        texts = {column: _ms(each.median_ms) for column in COLUMNS if (each := of[column].formation(size)) is not None}
        yield Row(f"{members} (delay {formation.delay_ms} ms)", _cells(texts))


def _population_rows(population: Population) -> Iterator[Row]:
    def row(name: str, text: str) -> Row:
        return Row(name, _cells({DEFAULT: text}))

    for role, memory in population.memory.items():
        yield row(f"PSS of the {_counted(role, memory)}", f"{memory.pss_mib:.0f} MiB")
        yield row(f"RSS of the {_counted(role, memory)}", f"{memory.rss_mib:.0f} MiB")
    yield row(f"time to form {population.groups:,} groups of 2", f"{population.formed_seconds:.0f} s")
    for idle in (population.idle_when_empty, population.idle):
        groups = f"{idle.groups:,} groups"
        yield row(f"batch that finds nothing to do, {groups}", _ms(idle.batch_ms))


def _counted(role: str, memory: Memory) -> str:
    return role if memory.processes == 1 else f"{memory.processes} {role}"


def _logic_row(figure: LogicFigure) -> Row:
    value = f"{figure.value:.1f}" if figure.value < 100 else f"{figure.value:,.0f}"
    value, goal = f"{value} {figure.unit}", f"{figure.goal:,g} {figure.unit}"
    return Row(figure.name, _cells({DEFAULT: value}), f"<= {goal}", _verdict(figure.is_met))


def first_minute_rows(first_minute: FirstMinute) -> Iterator[tuple[str, ...]]:
    """Return the rows of the table of a job's first minute."""
    starts = [window.start for window in first_minute.windows]
    width = starts[1] - starts[0] if len(starts) > 1 else 0
    for window in first_minute.windows:
        yield f"{window.start} to {window.start + width}", _ms(window.p50_ms), _ms(window.p99_ms)


def first_minute_title(first_minute: FirstMinute) -> str:
    """Return the title of that table."""
    return (
        f"The first minute of a new job, default profile: {first_minute.rate:,} commits/s over "
        f"{first_minute.groups:,} groups, {first_minute.failed:,} failed"
    )


def rich_tables(measured: Measurement) -> Iterator[Table]:
    """Return the tables for the terminal."""
    table = Table(title=f"{measured.date}, commit {measured.commit}", box=box.SIMPLE_HEAD)
    for index, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if 1 <= index <= 1 + len(COLUMNS) else "left")
    for section in sections(measured):
        table.add_row(f"[bold]{section.title}[/bold]")
        for row in section.rows:
            style = {MET: "green", MISSED: "red"}.get(row.verdict)
            table.add_row(*row._replace(name=f"  {row.name}").texts, style=style)
    yield table
    first_minute = measured.coordinators[DEFAULT].first_minute
    if first_minute is not None:
        table = Table(title=first_minute_title(first_minute), box=box.SIMPLE_HEAD)
        for heading in FIRST_MINUTE_HEADINGS:
            table.add_column(heading, justify="right")
        for cells in first_minute_rows(first_minute):
            table.add_row(*cells)
        yield table


def markdown(measured: Measurement) -> str:
    """Return the tables and notes as Markdown."""
    lines = [f"# Benchmark of {measured.date}, commit {measured.commit}", ""]
    lines += [_markdown_row(HEADINGS), f"|---|{'---:|' * (1 + len(COLUMNS))}---|"]
    for section in sections(measured):
        lines.append(_markdown_row(Row(f"**{section.title}**", _cells({})).texts))
        lines += [_markdown_row(row.texts) for row in section.rows]
    first_minute = measured.coordinators[DEFAULT].first_minute
    if first_minute is not None:
        lines += ["", f"{first_minute_title(first_minute)}:", ""]
        lines += [_markdown_row(FIRST_MINUTE_HEADINGS), "|---:|---:|---:|"]
        lines += map(_markdown_row, first_minute_rows(first_minute))
    return "\n".join([*lines, "", *(f"- {note}" for note in notes(measured)), ""])


def _markdown_row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def notes(measured: Measurement) -> Iterator[str]:
    """Return the conditions under which the figures were measured."""
    alone, scale = measured.generator, measured.scale
    if scale.warms_up:
        yield (
            "Warm-up before each load: "
            f"{scale.first_minute_seconds:g} s at 500 commits/s and {scale.default_warm_up_seconds:g} s at the steady "
            f"rate (default), {scale.latency_warm_up_seconds:g} s (latency), {scale.full_warm_up_seconds:g} s more at "
            f"10,000/s, {scale.short_warm_up_seconds:g} s (Spark's defaults, Kafka's broker)."
        )
    else:
        yield (
            "This run did not warm up: the job was seconds old, and slower than it is after its first minutes. "
            "Compare such runs only with each other."
        )
    yield "Latencies count from the time at which a request was due, on a schedule fixed in advance."
    yield (
        f"The load generator alone, reading its own records back from the broker: {alone.rate:,}/s, p50 "
        f"{_ms(alone.latency.p50_ms)}, p99 {_ms(alone.latency.p99_ms)}, {_cores(alone.generator_cores)}."
    )
    yield (
        "First join to Stable: the time from the first JoinGroup, whose response assigns a member id, to the last "
        "assignment; the median. The protocol doubles the initial delay when members join during it. The same in "
        "batches: divided by the median duration of a batch with requests."
    )
    yield (
        "Kafka's broker: the coordinator inside the broker of this benchmark, over Kafka's protocol; 10,000/s to 1,000 "
        "groups of one member. CPU: CPU seconds per second of driver, JVM and workers together."
    )
    yield "Many groups: with the default profile. The protocol alone: without Spark, so without a profile."
    for name, part in (
        ("The same for this job and Spark's defaults, whatever Spark's own default", measured.common),
        ("Machine", measured.machine),
        ("Versions", measured.versions),
    ):
        yield f"{name}: {', '.join(f'{key} {value}' for key, value in part.items())}."


def _ms(value: float) -> str:
    return f"{value:.1f} ms" if abs(value) < 10 else f"{value:,.0f} ms"


def _cores(value: float) -> str:
    return f"{value:.2f} cores"
