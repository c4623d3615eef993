"""`python -m tests.bench`: measure, print the table, keep it under bench-results/."""

import signal
import sys
import time
from datetime import datetime
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from streaming.broker import BrokerStartError
from streaming.jars import JarResolutionError, MissingPrerequisite
from streaming.job import DEFAULT_STATE_PARTITIONS
from streaming.options import load_options
from tests.bench import assignors, logic
from tests.bench.environment import ROOT, commit, machine, versions
from tests.bench.figures import QUICK, Measurement, Scale
from tests.bench.measure import DEFAULTS, SHIPPED, BenchFailed, measure_both
from tests.bench.report import markdown, notes, rich_table

RESULTS = ROOT / "bench-results"


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything: under two minutes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    trigger_interval_ms: Annotated[
        int | None, typer.Option(min=0, help="Of both coordinators; the job's own default if not given.")
    ] = None,
) -> None:
    """Measure the job as it ships beside the same query with Spark's default settings: about six minutes."""
    # Where there is no terminal, the table still wants its width.
    out, err = Console(width=None if sys.stdout.isatty() else 110), Console(stderr=True)
    # Whoever ends this process is to find nothing of it left running.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        measured = _measure(Scale() if not quick else QUICK, trigger_interval_ms, err)
    except (BenchFailed, BrokerStartError, JarResolutionError, MissingPrerequisite) as failure:
        err.print(f"bench: {failure}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    encoded = msgspec.json.format(msgspec.json.encode(measured), indent=2)
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / datetime.fromisoformat(measured.date).strftime("%Y%m%d-%H%M%S")
    file.with_suffix(".json").write_bytes(encoded + b"\n")
    file.with_suffix(".md").write_text(markdown(measured))
    if as_json:
        sys.stdout.write(encoded.decode() + "\n")
    else:
        out.print(rich_table(measured))
        for note in notes(measured):
            out.print(f"- {note}", highlight=False)
    err.print(f"kept as {file}.md and .json", highlight=False, soft_wrap=True)


def _measure(scale: Scale, trigger_interval_ms: int | None, console: Console) -> Measurement:
    if not sys.platform.startswith("linux"):
        raise BenchFailed("CPU time and memory are read from /proc, which only Linux has")
    flags = {} if trigger_interval_ms is None else {"trigger_interval_ms": trigger_interval_ms}
    options = load_options({"bootstrap_servers": "unused", "checkpoint": "unused", **flags}, {})
    common = {
        "master": options.master,
        "trigger": f"{options.trigger_interval_ms} ms",
        "state partitions": str(DEFAULT_STATE_PARTITIONS),
        "driver heap": options.driver_memory,
    }
    before = commit(), machine(), versions()
    date = datetime.now().astimezone().isoformat(timespec="seconds")
    began = time.monotonic()
    with console.status("") as status:

        def say(what: str) -> None:
            console.print(f"[dim]{time.monotonic() - began:5.0f}s[/dim]  {what}", highlight=False)
            status.update(what)

        say("the protocol by itself")
        protocol = [*logic.measured(), *assignors.measured()]
        figures = measure_both(scale, ["--trigger-interval-ms", str(options.trigger_interval_ms)], say)
    return Measurement(
        date=date,
        commit=before[0],
        machine=before[1],
        versions=before[2],
        common=common,
        scale=scale,
        logic=protocol,
        shipped=figures[SHIPPED],
        defaults=figures[DEFAULTS],
    )


if __name__ == "__main__":
    typer.run(bench)
