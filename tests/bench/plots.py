"""The figures as plots (PNG)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.bench.figures import (
    BROKER,
    DEFAULT,
    LATENCY,
    SPARK_DEFAULTS,
    FirstMinute,
    Heartbeats,
    Measurement,
    Stage,
)

COLORS = {DEFAULT: "#ff7f0e", LATENCY: "#1f77b4", SPARK_DEFAULTS: "#d62728", BROKER: "#2ca02c"}
DPI = 130
BESIDE: dict[str, Any] = {"fontsize": 7, "loc": "upper left", "bbox_to_anchor": (1, 1)}
"""The legend to the right of the axes, where it covers no figure."""


def draw(measured: Measurement, stem: Path) -> list[Path]:
    """Write the plots of a run as ``<stem>-<name>.png``, and return the files."""
    # No display is needed.
    mpl.use("agg")
    files = []
    for name, figure in _figures(measured):
        file = stem.with_name(f"{stem.name}-{name}.png")
        figure.savefig(file, dpi=DPI, bbox_inches="tight")
        files.append(file)
    return files


def _figures(measured: Measurement) -> Iterator[tuple[str, Figure]]:
    of = measured.coordinators
    steady = {name: load for name in COLORS if (load := of[name].steady) is not None}
    full = {name: load for name in COLORS if (load := of[name].full) is not None}
    yield "latency", _latency(steady)
    yield "full-load", _over_time(full)
    yield "formation", _formation(measured)
    first_minute = of[DEFAULT].first_minute
    if first_minute is not None:
        yield "first-minute", _first_minute(first_minute)
    if of[LATENCY].path:
        yield "request-path", _request_path(of[LATENCY].path)


def _latency(loads: Mapping[str, Heartbeats]) -> Figure:
    figure = Figure(figsize=(8, 3))
    axes = figure.subplots()
    percentiles = ("p50", "p90", "p99")
    width = 0.8 / len(loads)
    for index, (name, load) in enumerate(loads.items()):
        values = [load.latency.p50_ms, load.latency.p90_ms, load.latency.p99_ms]
        places = [place + width * (index - (len(loads) - 1) / 2) for place in range(len(percentiles))]
        bars = axes.bar(places, values, 0.9 * width, label=name, color=COLORS[name])
        axes.bar_label(bars, [f"{value:,.0f}" if value >= 10 else f"{value:.1f}" for value in values], fontsize=7)
    axes.set_xticks(range(len(percentiles)), percentiles)
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    load = next(iter(loads.values()))
    axes.set_title(f"Request to response, {load.rate:,} heartbeats/s over {load.groups:,} groups")
    axes.legend(**BESIDE)
    return figure


def _over_time(loads: Mapping[str, Heartbeats]) -> Figure:
    figure = Figure(figsize=(8, 3))
    axes = figure.subplots()
    for name, load in loads.items():
        at = [second.start for second in load.seconds]
        axes.plot(at, [second.p50_ms for second in load.seconds], color=COLORS[name], label=f"{name}, p50")
        axes.plot(at, [second.p99_ms for second in load.seconds], color=COLORS[name], ls=":", label=f"{name}, p99")
    axes.set_yscale("log")
    axes.set_xlabel("second in which the request was due")
    axes.set_ylabel("ms")
    axes.set_title(f"Request to response over time, {next(iter(loads.values())).rate:,} heartbeats/s")
    axes.legend(**BESIDE)
    return figure


def _formation(measured: Measurement) -> Figure:
    figure = Figure(figsize=(8, 3))
    axes = figure.subplots()
    for name, color in COLORS.items():
        formations = measured.coordinators[name].formations
        sizes, times = [each.members for each in formations], [max(1.0, each.median_ms) for each in formations]
        axes.plot(sizes, times, "o-", color=color, label=name)
    axes.set_xlabel("members")
    axes.set_ylabel("ms")
    axes.set_yscale("log")
    axes.set_title("First join to Stable, above the initial delay")
    axes.legend(**BESIDE)
    return figure


def _first_minute(first_minute: FirstMinute) -> Figure:
    figure = Figure(figsize=(8, 3))
    axes = figure.subplots()
    at = [window.start for window in first_minute.windows]
    axes.plot(at, [window.p50_ms for window in first_minute.windows], "o-", color=COLORS[DEFAULT], label="p50")
    axes.plot(at, [window.p99_ms for window in first_minute.windows], "o:", color=COLORS[DEFAULT], label="p99")
    axes.set_yscale("log")
    axes.set_xlabel("seconds since the job was ready")
    axes.set_ylabel("ms")
    axes.set_title(f"The first minute, {first_minute.rate:,} commits/s, default profile")
    axes.legend()
    return figure


def _request_path(stages: Sequence[Stage]) -> Figure:
    figure = Figure(figsize=(9, 3.2))
    axes = figure.subplots()
    begin = 0.0
    for place, stage in enumerate(stages):
        axes.barh(place, stage.milliseconds, left=begin, color=mpl.colormaps["tab10"](place))
        axes.text(begin + stage.milliseconds, place, f" {stage.milliseconds:.0f} ms", va="center", fontsize=8)
        begin += stage.milliseconds
    axes.set_yticks(range(len(stages)), [stage.name for stage in stages], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, begin * 1.08)
    axes.set_xlabel("ms since the request was due (medians)")
    axes.set_title(f"The {begin:.0f} ms of a request, profile latency")
    return figure
