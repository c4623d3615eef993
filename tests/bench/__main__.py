"""`python -m tests.bench`: measure, print the table, keep it under bench-results/."""

import signal
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from streaming.broker import BrokerStartError, EmbeddedBroker
from streaming.jars import JarResolutionError, MissingPrerequisite
from streaming.job import DEFAULT_STATE_PARTITIONS
from streaming.options import load_options
from tests.bench import assignors, logic, scenarios
from tests.bench.coordinators import BenchFailed
from tests.bench.environment import RESULTS, commit, machine, versions
from tests.bench.figures import QUICK, Measurement, Scale
from tests.bench.plots import draw
from tests.bench.report import markdown, notes, rich_table
from tests.bench.scenarios import LATENCY, Bench


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything: under four minutes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure the job beside Spark's default settings and a broker's own coordinator: under 15 minutes."""
    # Where there is no terminal, the table still wants its width.
    out, err = Console(width=None if sys.stdout.isatty() else 130), Console(stderr=True)
    # Whoever ends this process is to find nothing of it left running.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        measured = _measure(QUICK if quick else Scale(), err)
    except (BenchFailed, BrokerStartError, JarResolutionError, MissingPrerequisite) as failure:
        err.print(f"bench: {failure}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    encoded = msgspec.json.format(msgspec.json.encode(measured), indent=2)
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / datetime.fromisoformat(measured.date).strftime("%Y%m%d-%H%M%S")
    file.with_suffix(".json").write_bytes(encoded + b"\n")
    file.with_suffix(".md").write_text(markdown(measured))
    pictures = draw(measured, file)
    if as_json:
        sys.stdout.write(encoded.decode() + "\n")
    else:
        out.print(rich_table(measured))
        for note in notes(measured):
            out.print(f"- {note}", highlight=False)
    kept = ", ".join(picture.name for picture in pictures)
    err.print(f"kept as {file}.md and .json, {kept}", highlight=False, soft_wrap=True)


def _measure(scale: Scale, console: Console) -> Measurement:
    if not sys.platform.startswith("linux"):
        raise BenchFailed("CPU time and memory are read from /proc, which only Linux has")
    options = load_options({"bootstrap_servers": "unused", "checkpoint": "unused", **LATENCY}, {})
    common = {
        "master": options.master,
        "trigger": f"{options.batch_interval_ms} ms",
        "state partitions": str(DEFAULT_STATE_PARTITIONS),
        "driver heap": options.driver_memory,
    }
    before = commit(), machine(), versions()
    date = datetime.now().astimezone().isoformat(timespec="seconds")
    began = time.monotonic()
    with console.status("") as status, tempfile.TemporaryDirectory(prefix="group-coordinator-bench-") as folder:

        def say(what: str) -> None:
            console.print(f"[dim]{time.monotonic() - began:5.0f}s[/dim]  {what}", highlight=False)
            status.update(what)

        say("the protocol by itself")
        protocol = [*logic.measured(), *assignors.measured()]
        say("starting a broker")
        with EmbeddedBroker(data_dir=Path(folder) / "kafka") as broker:
            on_this = Bench(broker, Path(folder), scale, say)
            generator = scenarios.generator_alone(on_this)
            coordinators = scenarios.coordinators(on_this)
            population = scenarios.many_groups(on_this)
        say("done")
    return Measurement(
        date=date,
        commit=before[0],
        machine=before[1],
        versions=before[2],
        common=common,
        scale=scale,
        logic=protocol,
        generator=generator,
        coordinators=coordinators,
        population=population,
    )


if __name__ == "__main__":
    typer.run(bench)
