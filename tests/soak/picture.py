"""The figures of a soak over time, as a picture."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.plots import BESIDE, DPI
from tests.soak.figures import ROLES, Sample, Soak


def draw(measured: Soak, file: Path) -> None:
    """Write the picture as PNG."""
    # No display is needed.
    mpl.use("agg")
    figure = Figure(figsize=(9, 11), layout="constrained")
    axes: list[Axes] = list(figure.subplots(5, 1, sharex=True))
    samples = measured.samples
    minutes = [sample.at / 60 for sample in samples]
    for axis, field, title in zip(
        axes, ("memory_mib", "descriptors", "threads"), ("RSS, MiB", "file descriptors", "threads"), strict=False
    ):
        for role in ROLES:
            axis.plot(minutes, [getattr(sample, field).get(role) for sample in samples], label=role, lw=1)
        axis.set_title(title, fontsize=9)
    looks = [(sample.at / 60, sample.live_heap_mib) for sample in samples if sample.live_heap_mib is not None]
    axes[0].plot(*zip(*looks, strict=True), label="live heap of driver JVM", lw=1)
    for axis in axes[:3]:
        axis.legend(**BESIDE)
    axes[3].plot(minutes, [sample.checkpoint_files for sample in samples], lw=1, label="files")
    axes[3].plot(minutes, [sample.checkpoint_mib for sample in samples], lw=1, label="MiB")
    axes[3].set_title("checkpoint", fontsize=9)
    axes[3].legend(**BESIDE)
    _latencies(axes[4], minutes, samples)
    figure.savefig(file, dpi=DPI)


def _latencies(axes: Axes, minutes: list[float], samples: list[Sample]) -> None:
    for field, label in (
        ("heartbeat_p50_ms", "heartbeat p50"),
        ("heartbeat_p99_ms", "heartbeat p99"),
        ("commit_p50_ms", "commit p50"),
    ):
        axes.plot(minutes, [getattr(sample, field) for sample in samples], lw=1, label=label)
    axes.set_yscale("log")
    axes.set_title("latency, ms", fontsize=9)
    axes.set_xlabel("minutes")
    axes.legend(**BESIDE)
