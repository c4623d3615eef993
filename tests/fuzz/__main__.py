"""Fuzz everything that reads bytes of others, e.g. ``python -m tests.fuzz --minutes 10``.

Four targets share the time: frames of the wire protocol, records of the requests topic, snapshots in the checkpoint,
and the bytes of the consumer embedded protocol. atheris guides the inputs by the code that they reach. A number of
inputs instead of a time, with a seed and an empty corpus, gives the same inputs in each run.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.fuzz.campaign import TARGETS, Extent, TargetResult, fuzz

CORPUS = Path("build/fuzz")


def main() -> int:
    """Fuzz the targets; return 1 if an input escapes, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="the time for all targets together")
    parser.add_argument("--inputs", type=int, default=0, help="the number of inputs of each target, instead of a time")
    parser.add_argument("--seed", type=int, default=0, help="where libFuzzer's random numbers begin; 0: anywhere")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="the folder of inputs, kept for the next run")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=TARGETS)
    arguments = parser.parse_args()
    console = Console()
    seconds = max(1, round(arguments.minutes * 60 / len(arguments.targets)))
    extent = Extent(seconds, arguments.inputs, arguments.seed)
    how_long = f"with {extent.inputs:,} inputs" if extent.inputs else f"for {extent.seconds} s"
    results: list[TargetResult] = []
    for target in arguments.targets:
        with console.status(f"fuzzing {target} {how_long}"):
            results.append(fuzz(target, extent, arguments.corpus))
    console.print(_table(results))
    for result in results:
        if result.escaped is not None:
            console.print(f"\n{result.target}: an input escaped\n{result.escaped}", markup=False, highlight=False)
    return int(any(result.escaped is not None for result in results))


def _table(results: list[TargetResult]) -> Table:
    table = Table("target", "inputs", "edges reached", "escaped")
    for result in results:
        table.add_row(result.target, f"{result.inputs:,}", f"{result.coverage:,}", str(result.escaped is not None))
    table.add_row("all", f"{sum(result.inputs for result in results):,}", "", "")
    return table


if __name__ == "__main__":
    sys.exit(main())
