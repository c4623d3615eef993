"""Entry point of `make kafka-tests`: run Kafka's published tests of groups through job and gateway, and judge."""

import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tests.kafka_tests.exceptions import CANNOT_RUN, MAY_FAIL
from tests.kafka_tests.play import Result, counted, play
from tests.kafka_tests.profiles import PROFILES


def main(
    profiles: Annotated[list[str] | None, typer.Argument(help=f"By default all: {', '.join(PROFILES)}.")] = None,
    only: Annotated[str, typer.Option(help="A regular expression: run the classes that match it.")] = "",
    at_brokers: Annotated[
        bool, typer.Option("--at-brokers", help="Without job and gateway: shows what a broker passes.")
    ] = False,
) -> None:
    """Exit with 1 unless the tests that fail, or run in no profile, are those that cannot run."""
    if unknown := set(profiles or ()) - PROFILES.keys():
        raise typer.BadParameter(f"there is no profile {', '.join(sorted(unknown))}: {', '.join(PROFILES)}")
    console = Console(stderr=True)
    # SIGTERM must end the processes, too: as an exception it runs their exit handlers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="group-coordinator-kafka-tests-") as folder:
        for name in profiles or PROFILES:

            def report(line: str) -> None:
                console.print(line, markup=False, highlight=False)

            results += play(name, only, Path(folder) / name, report, at_brokers=at_brokers)
    for result in results:
        if result.outcome != "passed":
            print(f"{result.outcome} {result.profile} {result.test} {result.seconds:.0f} s: {result.why}")
    wrong = [] if at_brokers else judge(results, in_all_profiles=not profiles)
    for line in wrong:
        print(line)
    print(counted(results))
    if wrong or not results:
        raise typer.Exit(1)


def judge(results: Sequence[Result], *, in_all_profiles: bool) -> list[str]:
    """What is not as the exceptions say. A test passes if it passes in one profile and fails in none.

    ``in_all_profiles``: a test that was aborted everywhere has no profile that it could run in.
    """
    failed = {each.test for each in results if each.outcome == "failed"}
    passed = {each.test for each in results if each.outcome == "passed"} - failed
    aborted = {each.test for each in results if in_all_profiles} - failed - passed
    return [
        *(f"fails: {test}" for test in sorted(failed - CANNOT_RUN.keys() - MAY_FAIL.keys())),
        *(f"runs in no profile: {test}" for test in sorted(aborted - CANNOT_RUN.keys())),
        *(f"passes, but is listed: {test}" for test in sorted(passed & CANNOT_RUN.keys())),
    ]


if __name__ == "__main__":
    typer.run(main)
