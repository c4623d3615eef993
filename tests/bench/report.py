"""The figures as a table, asked and measured side by side: for the terminal, and as Markdown."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rich import box
from rich.table import Table

from tests.bench.figures import (
    BROKER,
    DEFAULTS,
    OURS,
    STOCK,
    Figures,
    Formation,
    Heartbeats,
    LogicFigure,
    Measurement,
    Memory,
    Population,
)

HEADINGS = ("", "asked", "this job", "Spark's defaults", "a broker", "")
BATCHES_TO_STABLE = 5
FORMATION_ASKED = 10
"""The size of the group for which a time is asked."""


class Row(NamedTuple):
    """A line of the table, as text. ``verdict`` is empty where nothing is asked."""

    what: str
    asked: str
    ours: str
    defaults: str = ""
    broker: str = ""
    verdict: str = ""


class Section(NamedTuple):
    """Lines of the table that are about the same."""

    title: str
    rows: list[Row]


def sections(measured: Measurement) -> Iterator[Section]:
    """The whole table."""
    of = measured.coordinators
    ours, defaults, broker = of[OURS], of[DEFAULTS], of[BROKER]
    yield Section("What is asked", list(_asked(measured)))
    yield Section(_title(ours.steady), list(_load_rows(ours.steady, defaults.steady, broker.steady)))
    yield Section(_title(ours.full), list(_load_rows(ours.full, None, broker.full)))
    formed = [_formation_row(figures, defaults, broker) for figures in ours.formations]
    yield Section("First join to Stable, above the initial delay", formed)
    yield Section("Many groups", list(_population_rows(measured.population)))
    yield Section("The protocol by itself, in one process", list(map(_logic_row, measured.logic)))


def _asked(measured: Measurement) -> Iterator[Row]:
    """The figures of the issue that this job was tuned for, in its order."""
    of, population = measured.coordinators, measured.population
    ours = of[OURS]
    assert ours.steady is not None
    assert ours.full is not None
    yield _limit("1,000 heartbeats/s over 1,000 groups, p50", ours.steady.latency.p50_ms, 100.0, _ms, ours.steady)
    yield _limit("1,000 heartbeats/s over 1,000 groups, p99", ours.steady.latency.p99_ms, 250.0, _ms, ours.steady)
    yield _limit(
        f"10,000 heartbeats/s over 1,000 groups of 10 for {len(ours.full.seconds)} s, p99",
        ours.full.latency.p99_ms,
        500.0,
        _ms,
        ours.full,
    )
    stock = of[STOCK].touched
    if ours.touched is not None and stock is not None:
        times = ours.touched.per_second / stock.per_second
        yield Row(
            "groups touched a second, against pyspark's worker",
            ">= 8x",
            f"{times:.1f}x ({ours.touched.per_second:,.0f}; {stock.per_second:,.0f})",
            verdict=_verdict(times >= 8),
        )
    idle, empty = population.idle, population.idle_when_empty
    ratio = idle.batch_ms / empty.batch_ms if empty.batch_ms else 0.0
    yield _limit(
        f"idle batch with {population.groups:,} groups, against an empty one", ratio, 1.3, lambda r: f"{r:.2f}x"
    )
    formation = ours.formation(FORMATION_ASKED)
    if formation is not None:
        yield _limit("10 members from first join to Stable, above the delay", formation.median_ms, 600.0, _ms)
        batches = formation.median_ms / formation.batch_ms if formation.batch_ms else 0.0
        yield _limit("the same, in batches", batches, BATCHES_TO_STABLE, lambda count: f"{count:.1f}")
    groups = f"with {population.groups:,} groups"
    yield _limit(f"kill -9 to first answer {groups}", population.first_answer_seconds, 20.0, lambda s: f"{s:.1f} s")
    yield _limit("idle, `balanced`, no groups", empty.coordinator_cores, 0.25, _cores)
    yield _limit(f"idle, `balanced`, {groups}", idle.coordinator_cores, 0.25, _cores)
    yield _limit(f"memory {groups} of 2 members", population.pss_mib / 1024, 2.5, lambda gib: f"{gib:.2f} GiB")


def _limit(what: str, value: float, most: float, text: Callable[[float], str], load: Heartbeats | None = None) -> Row:
    """Something that should be at most so much. Under a load every request must have been answered."""
    reached = 0 < value <= most and (load is None or not load.failed)
    return Row(what, f"<= {text(most)}", text(value), verdict=_verdict(reached))


def _verdict(reached: bool) -> str:
    return "reached" if reached else "not reached"


def _title(load: Heartbeats | None) -> str:
    assert load is not None
    members = f" of {load.members}" if load.members > 1 else ""
    return f"{load.rate:,} heartbeats/s over {load.groups:,} groups{members}, for {len(load.seconds)} s"


def _load_rows(ours: Heartbeats | None, defaults: Heartbeats | None, broker: Heartbeats | None) -> Iterator[Row]:
    def row(what: str, text: Callable[[Heartbeats], str]) -> Row:
        return Row(what, "", *("" if load is None else text(load) for load in (ours, defaults, broker)))

    yield row("request to response, p50", lambda load: _ms(load.latency.p50_ms))
    yield row("request to response, p90", lambda load: _ms(load.latency.p90_ms))
    yield row("request to response, p99", lambda load: _ms(load.latency.p99_ms))
    yield row(
        "p50 of its first and its last second",
        lambda load: f"{_ms(load.seconds[0].p50_ms)}, {_ms(load.seconds[-1].p50_ms)}",
    )
    yield row("answered, failed", lambda load: f"{load.latency.count:,}, {load.failed:,}")
    yield row("CPU of the coordinator", lambda load: _cores(load.coordinator_cores))
    yield row("CPU of the load generator", lambda load: _cores(load.generator_cores))
    yield row("CPU of all else", lambda load: _cores(load.other_cores))
    yield row("sent late by the generator, p99", lambda load: _ms(load.sent_late.p99_ms))


def _formation_row(ours: Formation, defaults: Figures, broker: Figures) -> Row:
    members = "1 member" if ours.members == 1 else f"{ours.members} members"
    others = (figures.formation(ours.members) for figures in (defaults, broker))
    texts = ("" if other is None else _ms(other.median_ms) for other in others)
    return Row(f"{members} (delay {ours.delay_ms} ms)", "", _ms(ours.median_ms), *texts)


def _population_rows(population: Population) -> Iterator[Row]:
    for role, memory in population.memory.items():
        yield Row(
            f"memory of {_counted(role, memory)}: PSS (RSS)", "", f"{memory.pss_mib:.0f} MiB ({memory.rss_mib:.0f})"
        )
    yield Row(f"{population.groups:,} groups of 2 formed in", "", f"{population.formed_seconds:.0f} s")
    for idle in (population.idle_when_empty, population.idle):
        groups = f"{idle.groups:,} groups"
        yield Row(f"idle batch, {groups}", "", _ms(idle.batch_ms))
        yield Row(f"files made in an hour of silence, {groups}", "", f"{idle.files_per_hour:,}")


def _counted(role: str, memory: Memory) -> str:
    return role if memory.processes == 1 else f"{role} ({memory.processes})"


def _logic_row(figure: LogicFigure) -> Row:
    value, asked = (f"{number:.3g} {figure.unit}" for number in (figure.value, figure.asked))
    return Row(figure.what, f"<= {asked}", value, verdict=_verdict(figure.reached))


def rich_table(measured: Measurement) -> Table:
    """For the terminal."""
    table = Table(title=f"{measured.date}, commit {measured.commit}", box=box.SIMPLE_HEAD)
    for index, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if 1 <= index <= 4 else "left")
    for section in sections(measured):
        table.add_row(f"[bold]{section.title}[/bold]")
        for row in section.rows:
            style = {"reached": "green", "not reached": "red"}.get(row.verdict)
            table.add_row(*row._replace(what=f"  {row.what}"), style=style)
    return table


def markdown(measured: Measurement) -> str:
    """For a file."""
    lines = [f"# Benchmark of {measured.date}, commit {measured.commit}", ""]
    lines += [_markdown_row(HEADINGS), "|---|---:|---:|---:|---:|---|"]
    for section in sections(measured):
        lines.append(_markdown_row(Row(f"**{section.title}**", "", "")))
        lines += map(_markdown_row, section.rows)
    return "\n".join([*lines, "", *(f"- {note}" for note in notes(measured)), ""])


def _markdown_row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def notes(measured: Measurement) -> Iterator[str]:
    """What has to be known to read the table."""
    alone = measured.generator
    yield "Latencies count from when a request was due, on a schedule fixed in advance; so nothing slow is left out."
    yield (
        f"The load generator alone, its records read back from the broker itself: {alone.rate:,}/s, p50 "
        f"{_ms(alone.latency.p50_ms)}, p99 {_ms(alone.latency.p99_ms)}, {_cores(alone.generator_cores)}."
    )
    yield (
        "First join to Stable: from the first JoinGroup, which is told its member id, to the last assignment; the "
        "median. The protocol doubles the initial delay when members join during it. In batches: by what one with "
        "requests took."
    )
    yield (
        "A broker: the coordinator inside the same broker, asked over Kafka's protocol; 10,000/s to 1,000 groups of "
        "one member. Cores: CPU seconds a second; of driver, JVM and workers together."
    )
    for name, part in (
        ("The same for this job and Spark's defaults, whatever Spark's default", measured.common),
        ("Machine", measured.machine),
        ("Versions", measured.versions),
    ):
        yield f"{name}: {', '.join(f'{key} {value}' for key, value in part.items())}."


def _ms(value: float) -> str:
    return f"{value:.1f} ms" if abs(value) < 10 else f"{value:,.0f} ms"


def _cores(value: float) -> str:
    return f"{value:.2f} cores"
