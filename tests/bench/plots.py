"""The figures as pictures (PNG)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.bench.figures import BROKER, DEFAULTS, OURS, Heartbeats, Measurement, Stretch

COLORS = {OURS: "#1f77b4", DEFAULTS: "#d62728", BROKER: "#2ca02c"}
DPI = 130


def draw(measured: Measurement, stem: Path) -> list[Path]:
    """Write the pictures of a run as ``<stem>-<name>.png``; returns the files."""
    # Nothing to look at them with may be there.
    mpl.use("agg")
    files = []
    for name, figure in _pictures(measured):
        file = stem.with_name(f"{stem.name}-{name}.png")
        figure.savefig(file, dpi=DPI, bbox_inches="tight")
        files.append(file)
    return files


def _pictures(measured: Measurement) -> Iterator[tuple[str, Figure]]:
    of = measured.coordinators
    steady = {name: load for name in (OURS, DEFAULTS, BROKER) if (load := of[name].steady) is not None}
    full = {name: load for name in (OURS, BROKER) if (load := of[name].full) is not None}
    yield "latency", _latency(steady)
    yield "full-load", _over_time(full)
    yield "formation", _formation(measured)
    if of[OURS].way:
        yield "way", way(of[OURS].way)


def _latency(loads: dict[str, Heartbeats]) -> Figure:
    figure = Figure(figsize=(7, 3))
    axes = figure.subplots()
    percentiles = ("p50", "p90", "p99")
    for index, (name, load) in enumerate(loads.items()):
        values = [load.latency.p50_ms, load.latency.p90_ms, load.latency.p99_ms]
        bars = axes.bar(
            [place + 0.25 * (index - 1) for place in range(3)], values, 0.23, label=name, color=COLORS[name]
        )
        axes.bar_label(bars, [f"{value:,.0f}" if value >= 10 else f"{value:.1f}" for value in values], fontsize=7)
    axes.set_xticks(range(3), percentiles)
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    load = next(iter(loads.values()))
    axes.set_title(f"Request to response, {load.rate:,} heartbeats/s over {load.groups:,} groups")
    axes.legend()
    return figure


def _over_time(loads: dict[str, Heartbeats]) -> Figure:
    figure = Figure(figsize=(7, 3))
    axes = figure.subplots()
    for name, load in loads.items():
        axes.plot([second.p50_ms for second in load.seconds], color=COLORS[name], label=f"{name}, p50")
        axes.plot([second.p99_ms for second in load.seconds], color=COLORS[name], ls=":", label=f"{name}, p99")
    axes.set_yscale("log")
    axes.set_xlabel("second in which the request was due")
    axes.set_ylabel("ms")
    axes.set_title(f"Does it keep up? {next(iter(loads.values())).rate:,} heartbeats/s")
    axes.legend()
    return figure


def _formation(measured: Measurement) -> Figure:
    figure = Figure(figsize=(7, 3))
    axes = figure.subplots()
    for name in (OURS, DEFAULTS, BROKER):
        formations = measured.coordinators[name].formations
        sizes, times = [each.members for each in formations], [max(1.0, each.median_ms) for each in formations]
        axes.plot(sizes, times, "o-", color=COLORS[name], label=name)
    axes.set_xlabel("members")
    axes.set_ylabel("ms")
    axes.set_yscale("log")
    axes.set_title("First join to Stable, above the initial delay")
    axes.legend()
    return figure


def way(stretches: Sequence[Stretch]) -> Figure:
    """Where one request's milliseconds go, end to end."""
    figure = Figure(figsize=(9, 3.2))
    axes = figure.subplots()
    begin = 0.0
    for place, stretch in enumerate(stretches):
        axes.barh(place, stretch.milliseconds, left=begin, color=mpl.colormaps["tab10"](place))
        axes.text(begin + stretch.milliseconds, place, f" {stretch.milliseconds:.0f} ms", va="center", fontsize=8)
        begin += stretch.milliseconds
    axes.set_yticks(range(len(stretches)), [stretch.what for stretch in stretches], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, begin * 1.08)
    axes.set_xlabel("ms since the request was due (medians)")
    axes.set_title(f"Where {begin:.0f} ms go")
    return figure
