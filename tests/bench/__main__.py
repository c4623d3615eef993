"""Entry point of `make bench`: measure, print the tables, and write them to bench-results/."""

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

from streaming.embedded.broker import BrokerStartError, EmbeddedBroker
from streaming.embedded.jars import JarResolutionError, MissingPrerequisite
from streaming.job.options import load_options
from streaming.job.state_stores import DEFAULT_STATE_PARTITIONS
from tests.bench import assignors, consumer_groups, logic
from tests.bench.environment import RESULTS, commit, machine, versions
from tests.bench.figures import (
    BROKER,
    DEFAULT,
    FIXED,
    LATENCY,
    QUICK,
    SMALLEST,
    SPARK_DEFAULTS,
    STOCK_WORKER,
    Figures,
    Measurement,
    Scale,
)
from tests.bench.plots import draw
from tests.bench.report import markdown, notes, rich_tables
from tests.bench.scenarios import broker as broker_scenarios
from tests.bench.scenarios import job
from tests.bench.scenarios.loads import Bench
from tests.bench.scenarios.population import many_groups
from tests.bench.systems.coordinators import BenchFailed

WIDTH_WITHOUT_TERMINAL = 180


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure less of everything, without warm-up: in under five minutes.")
    ] = False,
    smallest: Annotated[bool, typer.Option("--smallest", help="Measure a moment of everything: a smoke test.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure the job beside Spark's default settings and a broker's own coordinator, in about 25 minutes."""
    out, err = Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL), Console(stderr=True)
    # SIGTERM must end the broker and the coordinators, too: as an exception it runs their exit handlers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        measured = _measure(SMALLEST if smallest else QUICK if quick else Scale(), err)
    except (BenchFailed, BrokerStartError, JarResolutionError, MissingPrerequisite) as failure:
        err.print(f"bench: {failure}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    encoded = msgspec.json.format(msgspec.json.encode(measured), indent=2)
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / datetime.fromisoformat(measured.date).strftime("%Y%m%d-%H%M%S")
    file.with_suffix(".json").write_bytes(encoded + b"\n")
    file.with_suffix(".md").write_text(markdown(measured))
    plots = draw(measured, file)
    if as_json:
        sys.stdout.write(encoded.decode() + "\n")
    else:
        for table in rich_tables(measured):
            out.print(table)
        for note in notes(measured):
            out.print(f"- {note}", highlight=False)
    written = ", ".join(plot.name for plot in plots)
    err.print(f"wrote {file}.md and .json, {written}", highlight=False, soft_wrap=True)


def _measure(scale: Scale, console: Console) -> Measurement:
    if not sys.platform.startswith("linux"):
        raise BenchFailed("CPU time and memory are read from /proc, which only Linux has")
    options = load_options({"bootstrap_servers": "kafka:9092", "checkpoint": "unused"}, {})
    common = {
        "master": options.master,
        "state partitions": str(DEFAULT_STATE_PARTITIONS),
        "driver heap": options.driver_memory,
    }
    environment = commit(), machine(), versions()
    date = datetime.now().astimezone().isoformat(timespec="seconds")
    began = time.monotonic()
    with console.status("") as status, tempfile.TemporaryDirectory(prefix="group-coordinator-bench-") as folder:

        def report(activity: str) -> None:
            console.print(f"[dim]{time.monotonic() - began:5.0f}s[/dim]  {activity}", highlight=False)
            status.update(activity)

        report("the protocol alone")
        protocol = [*logic.figures(), *consumer_groups.figures(), *assignors.figures()]
        report("starting a broker")
        with EmbeddedBroker(data_dir=Path(folder) / "kafka") as broker:
            context = Bench(broker, Path(folder), scale, report)
            generator = broker_scenarios.generator_alone(context)
            coordinators = _coordinators(context)
            population = many_groups(context)
        report("done")
    return Measurement(
        date=date,
        commit=environment[0],
        machine=environment[1],
        versions=environment[2],
        common=common,
        scale=scale,
        logic=protocol,
        generator=generator,
        coordinators=coordinators,
        population=population,
    )


def _coordinators(context: Bench) -> dict[str, Figures]:
    """Measure each coordinator under load, one after the other."""
    return {
        DEFAULT: job.default_job(context),
        FIXED: job.fixed_interval_job(context),
        LATENCY: job.latency_job(context),
        STOCK_WORKER: job.stock_worker_job(context),
        SPARK_DEFAULTS: job.spark_defaults_job(context),
        BROKER: broker_scenarios.broker_coordinator(context),
    }


if __name__ == "__main__":
    typer.run(bench)
