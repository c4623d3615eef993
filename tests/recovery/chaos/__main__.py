"""Entry point of `make chaos`: play runs, print the summary, write it as JSON to bench-results/."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from tests.bench.environment import RESULTS
from tests.recovery.chaos.broken.defects import DEFECTS
from tests.recovery.chaos.campaign import Campaign, Summary, summary
from tests.recovery.chaos.faults.catalogue import FAULTS
from tests.recovery.chaos.plan import make_plan
from tests.recovery.chaos.run import Verdict

SUMMARY = "summary.json"


def main(
    runs: Annotated[int, typer.Option(help="How many runs.", min=1)] = 200,
    seed: Annotated[int, typer.Option(help="The seed of the first run; the others follow it.", min=0)] = 0,
    only: Annotated[str | None, typer.Option(help=f"Inject this fault alone: {', '.join(FAULTS)}.")] = None,
    broken: Annotated[
        str | None, typer.Option(help=f"Break every job on purpose, to see it found: {', '.join(DEFECTS)}.")
    ] = None,
    newer: Annotated[bool, typer.Option("--newer", help="Add a group of the consumer group protocol.")] = False,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Run the jobs on a standalone Spark cluster, with an object store.")
    ] = False,
    minutes: Annotated[float | None, typer.Option(help="Begin no further run after this time.")] = None,
    beside: Annotated[int, typer.Option(help="How many processes share the runs, each with brokers.", min=1)] = 1,
    folder: Annotated[Path, typer.Option(help="Gets the summary, and the files of runs that are not good.")] = RESULTS
    / "chaos",
) -> None:
    """Break things, and judge what clients saw; exit with 1 if anything is wrong."""
    if only is not None and only not in FAULTS:
        raise typer.BadParameter(f"there is no fault {only}: {', '.join(FAULTS)}")
    if broken is not None and broken not in DEFECTS:
        raise typer.BadParameter(f"there is no defect {broken}: {', '.join(DEFECTS)}")
    console = Console(stderr=True)
    # SIGTERM must end the processes, too: as an exception it runs their exit handlers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    verdicts: list[Verdict] = []
    try:
        if beside > 1:
            options = [("--only", only), ("--broken", broken), ("--minutes", minutes)]
            given = [text for name, value in options if value is not None for text in (name, str(value))]
            given += ["--newer"] if newer else []
            given += ["--cluster"] if cluster else []
            play_beside(runs, seed, beside, folder, given, verdicts)
        else:
            report = partial(console.print, markup=False, highlight=False)
            with Campaign(folder, report, broken, on_cluster=cluster) as campaign:
                for number in range(runs):
                    if minutes is not None and sum(verdict.seconds for verdict in verdicts) > minutes * 60:
                        break
                    plan = make_plan(seed + number, only, has_consumer_members=newer, on_cluster=cluster)
                    verdicts.append(campaign.play(plan))
    finally:
        result = summary(verdicts)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / SUMMARY
        file.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
        show(result, Console())
        console.print(f"wrote {file}", highlight=False)
    if result.failed:
        raise typer.Exit(1)


def play_beside(
    runs: int, seed: int, processes: int, folder: Path, options: Sequence[str], verdicts: list[Verdict]
) -> None:
    """Play the runs in several processes at a time, and add their verdicts, also of those that were interrupted."""
    started: list[tuple[subprocess.Popen[bytes], Path]] = []
    begins = [seed + runs * number // processes for number in range(processes + 1)]
    try:
        for begin, end in pairwise(begins):
            if begin == end:
                continue
            part = folder / f"from-{begin}"
            command = [sys.executable, "-m", "tests.recovery.chaos", "--runs", str(end - begin), "--seed", str(begin)]
            (part / SUMMARY).unlink(missing_ok=True)
            # In a session of its own: Ctrl-C in a terminal would interrupt its clean-up, which SIGTERM begins.
            process = subprocess.Popen([*command, "--folder", str(part), *options], start_new_session=True)
            started.append((process, part))
        for process, _ in started:
            process.wait()
    finally:
        for process, _ in started:
            if process.poll() is None:
                process.terminate()
        for process, part in started:
            process.wait()
            if (file := part / SUMMARY).exists():
                verdicts.extend(msgspec.json.decode(file.read_bytes(), type=Summary).verdicts)


def show(result: Summary, console: Console) -> None:
    """Print the summary."""
    table = Table("fault", "injected")
    for name, count in result.faults.items():
        table.add_row(name, str(count))
    console.print(table)
    for title, counts in (("not injected", result.skipped), ("the job ended by itself", result.job_ends)):
        for line, count in counts.items():
            console.print(f"{title}: {count} x {line}", markup=False, highlight=False)
    operations = sum(count for name, count in result.operations.items() if name.endswith(" invoke"))
    console.print(
        f"{result.runs} runs in {result.seconds / 60:.1f} min, {sum(result.faults.values())} faults, {operations} "
        f"operations, {result.transactions} transactions, {result.journal_entries} journal entries; "
        f"{result.violations} violations, {len(result.failed)} runs not good",
        highlight=False,
    )
    for verdict in result.failed:
        console.print(f"not good: seed {verdict.seed}: {verdict.plan}", markup=False, highlight=False)


if __name__ == "__main__":
    typer.run(main)
