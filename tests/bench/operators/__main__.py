"""Compare Spark's two operators for the coordinator's step: `python -m tests.bench.operators`; 20 minutes.

``applyInPandasWithState``, with the Arrow-native worker and with pyspark's, and ``transformWithState``, with pandas
frames and with rows. Each runs the whole job: the step with the groups' state in RocksDB, and the topics of requests
and responses. All are started and warmed up first, and measured alternately, in short rounds in one run, as
:mod:`tests.bench.compare` does it; a ratio is the median of the ratios of the rounds.
"""

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

from streaming.embedded.broker import EmbeddedBroker
from tests.bench.environment import RESULTS, commit, machine, versions
from tests.bench.figures import Scale
from tests.bench.operators.comparison import QUICK, SYSTEMS, Extent, Operators, measure, table
from tests.bench.scenarios.loads import Bench


def main(
    quick: Annotated[bool, typer.Option("--quick", help="One short round of everything.")] = False,
    only: Annotated[str, typer.Option(help="Systems separated by commas.")] = ",".join(SYSTEMS),
) -> None:
    """Measure the systems alternately, and print the medians and their ratios to the first."""
    console = Console(stderr=True)
    # SIGTERM must end the broker and the coordinators, too: as an exception it runs their exit handlers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()

    def report(activity: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:5.0f}s[/dim]  {activity}", highlight=False)

    date, before = datetime.now().astimezone(), machine()
    with (
        tempfile.TemporaryDirectory(prefix="group-coordinator-operators-") as folder,
        EmbeddedBroker(data_dir=Path(folder) / "kafka") as broker,
    ):
        bench = Bench(broker, Path(folder), Scale(), report)
        systems = {name: SYSTEMS[name] for name in only.split(",")}
        figures = measure(bench, systems, QUICK if quick else Extent())
    operators = Operators(
        date=date.isoformat(timespec="seconds"), commit=commit(), machine=before, versions=versions(), figures=figures
    )
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / date.strftime("operators-%Y%m%d-%H%M%S.json")
    file.write_bytes(msgspec.json.format(msgspec.json.encode(operators), indent=2) + b"\n")
    Console(width=None if sys.stdout.isatty() else 180).print(table(operators))
    console.print(f"wrote {file}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    typer.run(main)
