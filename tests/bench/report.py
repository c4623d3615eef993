"""The figures as a table: for the terminal, and as Markdown."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rich import box
from rich.table import Table

from tests.bench.figures import Figures, Formation, Load, LogicFigure, Measurement, Memory

ASKED_TIMES_QUICKER = 5.0
HEADINGS = ("", "this job", "Spark's defaults", "ratio", "asked", "")


class Row(NamedTuple):
    """A line of the table, as text. ``verdict`` is empty where nothing is asked."""

    what: str
    shipped: str
    defaults: str
    ratio: str = ""
    asked: str = ""
    verdict: str = ""


class Section(NamedTuple):
    """Lines of the table that are about the same."""

    title: str
    rows: list[Row]


class _Pair(NamedTuple):
    """The same figure of both coordinators, and how many times that of the defaults is this job's."""

    shipped: float
    defaults: float

    @property
    def times(self) -> float:
        return self.defaults / self.shipped if self.shipped > 0 else 0.0

    def row(self, what: str, text: Callable[[float], str]) -> Row:
        return Row(what, text(self.shipped), text(self.defaults), f"{self.times:.1f}x")


def sections(measured: Measurement) -> Iterator[Section]:
    """The whole table."""
    shipped, defaults = measured.shipped, measured.defaults
    for rate in measured.scale.rates:
        yield Section(f"{rate} requests/s", list(_load_rows(shipped.load(rate), defaults.load(rate))))
    formed = [
        _formation_row(shipped.formation(members), defaults.formation(members))
        for members in measured.scale.group_sizes
    ]
    yield Section("First join to Stable, above the initial delay", formed)
    yield Section("Memory: PSS (RSS)", list(_memory_rows(shipped.memory, defaults.memory)))
    yield Section("Other", list(_other_rows(shipped, defaults)))
    yield Section("The protocol by itself, in one process", list(map(_logic_row, measured.logic)))


def _load_rows(shipped: Load, defaults: Load) -> Iterator[Row]:
    def row(what: str, text: Callable[[Load], str]) -> Row:
        return Row(what, text(shipped), text(defaults))

    p50 = _Pair(shipped.latency.p50_ms, defaults.latency.p50_ms)
    verdict = "reached" if p50.times >= ASKED_TIMES_QUICKER and not shipped.failed else "not reached"
    yield p50.row("request to response, p50", _ms)._replace(asked=f">= {ASKED_TIMES_QUICKER:g}x", verdict=verdict)
    yield _Pair(shipped.latency.p99_ms, defaults.latency.p99_ms).row("request to response, p99", _ms)
    yield row("answered, failed", lambda load: f"{load.latency.count}, {load.failed}")
    yield row("CPU of the coordinator", lambda load: _cores(load.coordinator_cores))
    yield row("CPU of the load generator", lambda load: _cores(load.generator_cores))
    yield row("CPU of broker and all else", lambda load: _cores(load.other_cores))
    yield row("sent too late by the generator, p99", lambda load: _ms(load.sent_late.p99_ms))
    yield row("through the broker alone, p50", lambda load: _ms(load.broker_round_trip.p50_ms))
    yield row("through the broker alone, p99", lambda load: _ms(load.broker_round_trip.p99_ms))


def _formation_row(shipped: Formation, defaults: Formation) -> Row:
    members = "1 member" if shipped.members == 1 else f"{shipped.members} members"
    return _Pair(shipped.median_ms, defaults.median_ms).row(f"{members} (delay {shipped.delay_ms} ms)", _ms)


def _memory_rows(shipped: dict[str, Memory], defaults: dict[str, Memory]) -> Iterator[Row]:
    for role, ours in shipped.items():
        theirs = defaults[role]
        pair = _Pair(ours.pss_mib, theirs.pss_mib)
        processes = "" if ours.processes == 1 else f" ({ours.processes}; {theirs.processes})"
        texts = [f"{each.pss_mib:.0f} MiB ({each.rss_mib:.0f})" for each in (ours, theirs)]
        yield pair.row(f"{role}{processes}", str)._replace(shipped=texts[0], defaults=texts[1])
    totals = (sum(memory.pss_mib for memory in by_role.values()) for by_role in (shipped, defaults))
    yield _Pair(*totals).row("all", lambda mebibytes: f"{mebibytes:.0f} MiB")


def _other_rows(shipped: Figures, defaults: Figures) -> Iterator[Row]:
    idle = _Pair(shipped.idle.coordinator_cores, defaults.idle.coordinator_cores)
    yield idle.row("CPU of the idle coordinator", _cores)
    yield _Pair(shipped.start_seconds, defaults.start_seconds).row("start to ready", lambda seconds: f"{seconds:.1f} s")


def _logic_row(figure: LogicFigure) -> Row:
    value, asked = (f"{number:.3g} {figure.unit}" for number in (figure.value, figure.asked))
    return Row(figure.what, value, "", asked=f"<= {asked}", verdict="reached" if figure.reached else "not reached")


def rich_table(measured: Measurement) -> Table:
    """For the terminal."""
    table = Table(title=f"{measured.date}, commit {measured.commit}", box=box.SIMPLE_HEAD)
    for index, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if 1 <= index <= 3 else "left")
    for section in sections(measured):
        table.add_row(f"[bold]{section.title}[/bold]")
        for row in section.rows:
            style = {"reached": "green", "not reached": "red"}.get(row.verdict)
            table.add_row(*row._replace(what=f"  {row.what}"), style=style)
    return table


def markdown(measured: Measurement) -> str:
    """For a file."""
    lines = [f"# Benchmark of {measured.date}, commit {measured.commit}", ""]
    lines += [_markdown_row(HEADINGS), "|---|---:|---:|---:|---|---|"]
    for section in sections(measured):
        lines.append(_markdown_row(Row(f"**{section.title}**", "", "")))
        lines += map(_markdown_row, section.rows)
    return "\n".join([*lines, "", *(f"- {note}" for note in notes(measured)), ""])


def _markdown_row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def notes(measured: Measurement) -> Iterator[str]:
    """What has to be known to read the table."""
    yield "Latencies count from when a request was due, on a schedule fixed in advance; so nothing slow is left out."
    yield (
        "Through the broker alone: a record produced and consumed by the load generator in the same seconds. A request "
        "goes that way twice."
    )
    yield (
        "First join to Stable: from the first JoinGroup, which is told its member id, to the last assignment; the "
        "median. The protocol doubles the initial delay when members join during it."
    )
    yield "Cores: CPU seconds a second, of driver, JVM and workers together."
    for name, part in (
        ("The same for both, whatever Spark's default", measured.common),
        ("Machine", measured.machine),
        ("Versions", measured.versions),
    ):
        yield f"{name}: {', '.join(f'{key} {value}' for key, value in part.items())}."


def _ms(value: float) -> str:
    return f"{value:.1f} ms" if abs(value) < 10 else f"{value:.0f} ms"


def _cores(value: float) -> str:
    return f"{value:.2f} cores"
