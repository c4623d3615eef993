"""Entry point of `make soak`: run, print the slopes, write JSON and a picture to bench-results/."""

import signal
import sys
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from tests.bench.environment import RESULTS
from tests.soak.campaign import Plan, soak
from tests.soak.figures import Soak
from tests.soak.picture import draw
from tests.soak.sampler import SETTLING_SECONDS

RESTARTING_SHARE = 0.4
"""The part of the time in which the processes are restarted: the slopes are judged in the long lives that follow."""
RESTARTS = 24
SHORTEST_BETWEEN_RESTARTS_SECONDS = 60.0
SETTLING_SHARE = 0.15
"""How much of the whole time a process has run before its figures are compared."""


def main(
    minutes: Annotated[float, typer.Option(help="How long the members live.")] = 120,
    members: Annotated[int, typer.Option(help="How many members there are at a time.")] = 200,
    seed: Annotated[int, typer.Option(help="Where the random numbers begin.")] = 1,
) -> None:
    """Soak the job and the gateway; exit with 1 if an answer was wrong, or a slope would end a month."""
    console = Console(stderr=True)
    # SIGTERM must end the processes, too: as an exception it runs their exit handlers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    restarting = minutes * RESTARTING_SHARE
    plan = Plan(
        minutes=minutes,
        members=members,
        restarting_minutes=restarting,
        restart_every_seconds=max(SHORTEST_BETWEEN_RESTARTS_SECONDS, restarting * 60 / RESTARTS),
        settling_seconds=max(SETTLING_SECONDS, minutes * 60 * SETTLING_SHARE),
        seed=seed,
    )
    measured = soak(plan, lambda line: console.print(line, highlight=False))
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / "soak.json"
    file.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=2) + b"\n")
    draw(measured, file.with_suffix(".png"))
    Console(width=None if sys.stdout.isatty() else 140).print(table(measured))
    for line in measured.wrong:
        console.print(f"wrong: {line}", markup=False, highlight=False)
    console.print(f"wrote {file} and {file.with_suffix('.png').name}; {measured.counts}", highlight=False)
    if measured.wrong or any(slope.ends_a_month for slope in measured.slopes):
        raise typer.Exit(1)


def table(measured: Soak) -> Table:
    """The slopes as a table."""
    shown = Table("figure", "at the end", "a day", "95% from", "to", "in a month at least", "limit", "ends a month")
    for slope in measured.slopes:
        numbers = (slope.last, slope.per_day, slope.low, slope.high, slope.in_a_month, slope.limit)
        shown.add_row(slope.figure, *(f"{number:,.1f}" for number in numbers), str(slope.ends_a_month))
    return shown


if __name__ == "__main__":
    typer.run(main)
