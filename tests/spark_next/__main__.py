"""Tries Spark's internals with other versions of pyspark: ``python -m tests.spark_next [VERSION ...]``.

Each version is installed into a folder of its own under ``build/spark-next``, and runs a copy of this tree. For each
internal of the table, its names are looked up, a job that uses it answers random requests, and its tests run. A trial
takes ten minutes on an idle machine. ``--record`` writes the results to the table of trials, from which the job takes
what it uses, and ``make documents`` the documentation. ``build/spark-next/logs`` has the output of each step. The
command fails if something that the table lists does not hold.
"""

import argparse
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pyspark
from rich import box
from rich.console import Console
from rich.table import Table

from streaming.job.spark_internals import trials
from streaming.job.spark_internals.trials import TRIALS, Trial
from tests.spark_next.entries import BOUND_TO_VERSIONS, NAMES
from tests.spark_next.environments import ROOT, Environment, connector_version, newest_pyspark, prepare
from tests.spark_next.record import source
from tests.spark_next.trying import Attempt, try_internals

HELD = "held"


def main() -> int:
    """Try the versions, and print a table; returns 1 if an internal that is listed as tried does not hold."""
    arguments = _arguments()
    # SIGTERM must end the processes of a trial, too: as an exception it does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began, console = time.monotonic(), Console(stderr=True)

    def report(line: str) -> None:
        console.print(f"{time.monotonic() - began:5.0f}s  {line}", markup=False, highlight=False, soft_wrap=True)

    found = {}
    for version in arguments.versions or [pyspark.__version__ if arguments.installed else newest_pyspark()]:
        report(f"pyspark {version} with connector {arguments.connector}")
        if arguments.installed:
            environment = Environment(Path(sys.executable), ROOT, is_own=True)
        else:
            environment = prepare(version, arguments.connector)
        names = tuple(name for name in NAMES if name in (arguments.internals or NAMES))
        attempt = Attempt(environment, version, arguments.connector, names, report)
        found[version] = try_internals(attempt, with_job=not arguments.without_job)
    Console(width=None if sys.stdout.isatty() else 150).print(table(found))
    if arguments.record:
        file = Path(trials.__file__)
        file.write_text(source({**TRIALS, **found}))
        console.print(f"wrote {file}; run make documents", highlight=False, soft_wrap=True)
    broken = broken_promises(found)
    for line in broken:
        console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
    return int(bool(broken))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.spark_next", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="of pyspark; the newest release without any")
    parser.add_argument("--connector", default=connector_version(), help="the version of Spark's Kafka connector")
    parser.add_argument("--internals", nargs="+", choices=NAMES, help="try these only")
    parser.add_argument("--without-job", action="store_true", help="check names, and run tests that need no JVM, only")
    parser.add_argument("--installed", action="store_true", help="try the installed pyspark, and install nothing")
    parser.add_argument("--record", action="store_true", help="write the results to the table of trials")
    arguments = parser.parse_args()
    if arguments.record and (arguments.internals or arguments.without_job):
        parser.error("only a whole trial can be recorded")
    if arguments.installed and arguments.versions:
        parser.error("--installed tries one version")
    return arguments


def table(found: Mapping[str, Trial]) -> Table:
    """The internals, and what was found with each version."""
    shown = Table("internal", *(f"pyspark {version}" for version in found), box=box.SIMPLE_HEAD)
    for name in NAMES:
        cells = [trial.failed.get(name, HELD if name in trial.held else "") for trial in found.values()]
        shown.add_row(name if name in BOUND_TO_VERSIONS else f"{name} (any version)", *cells)
    return shown


def broken_promises(found: Mapping[str, Trial]) -> list[str]:
    """A line for each internal that the table of trials lists as held with a version, and that has failed with it."""
    return [
        f"{name} is listed as tried with pyspark {version}, and fails: {why}"
        for version, trial in found.items()
        for name, why in trial.failed.items()
        if version in TRIALS and name in TRIALS[version].held
    ]


if __name__ == "__main__":
    sys.exit(main())
