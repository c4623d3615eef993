"""The cost of silence: `python -m tests.bench.idle [--against CHECKOUT]`; 5 minutes for each checkout.

A coordinator without groups, and one with many groups whose members say nothing, each for a minute with the default
profile. With another checkout, the same of its code, one coordinator after the other.
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.table import Table

from tests.bench.environment import ROOT, commit, machine, print_results, write_results
from tests.bench.figures import SMALLEST, Idle, Scale
from tests.bench.scenarios.job import DEFAULT_PROFILE
from tests.bench.scenarios.loads import Bench, group_names, measuring
from tests.bench.scenarios.population import MEMBERS_OF_MANY
from tests.bench.scenarios.silence import idle
from tests.bench.systems.coordinators import running

HEADINGS = ("commit", "groups", "CPU", "batches", "files", "batch that finds nothing to do")


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a run: by commit, without groups and with many."""

    date: str
    machine: dict[str, str]
    idle: dict[str, list[Idle]]


def measure(bench: Bench, checkout: Path, name: str) -> list[Idle]:
    """Measure the coordinator of a checkout without groups, and then, in the same process, with many."""
    scale = bench.scale
    with (
        running(name, bench.broker, bench.folder, DEFAULT_PROFILE, checkout=checkout) as coordinator,
        bench.events(coordinator) as events,
    ):
        bench.report(f"{name}, no groups: {scale.settling_seconds:g} + {scale.idle_seconds:g} s")
        empty = idle(coordinator, scale, 0)
        bench.report(f"{name}: forming {scale.many_groups:,} groups of {MEMBERS_OF_MANY}")
        events.form_groups(group_names("silent", scale.many_groups), MEMBERS_OF_MANY)
        settling = scale.settling_seconds_of_many
        bench.report(f"{name}, {scale.many_groups:,} groups: {settling:g} + {scale.idle_seconds:g} s")
        many = idle(coordinator, msgspec.structs.replace(scale, settling_seconds=settling), scale.many_groups)
    return [empty, many]


def table(silence: Silence) -> Table:
    """The figures for the terminal."""
    shown = Table(title=silence.date, box=box.SIMPLE_HEAD)
    for heading in HEADINGS:
        shown.add_column(heading, justify="left" if heading == "commit" else "right")
    for name, figures in silence.idle.items():
        for each in figures:
            cores, batch = f"{each.coordinator_cores:.4f} cores", f"{each.batch_ms:.0f} ms"
            shown.add_row(name, f"{each.groups:,}", cores, str(each.batches), str(each.files), batch)
    return shown


def main(
    against: Annotated[Path | None, typer.Option("--against", help="The root of another checkout.")] = None,
    groups: Annotated[int, typer.Option("--groups", help="How many groups are many.")] = Scale().many_groups,
    settling: Annotated[
        float, typer.Option("--settling", help="How long the job without groups runs before its minute begins, s.")
    ] = Scale().settling_seconds,
    smallest: Annotated[bool, typer.Option("--smallest", help="Measure a moment: a smoke test.")] = False,
) -> None:
    """Measure an idle minute, without groups and with many."""
    date, before, figures = datetime.now().astimezone(), machine(), {}
    scale = SMALLEST if smallest else msgspec.structs.replace(Scale(), many_groups=groups, settling_seconds=settling)
    with measuring("idle", scale) as bench:
        for name, checkout in (("this", ROOT), *([] if against is None else [("other", against.resolve())])):
            figures[f"{name}, {commit(checkout)}"] = measure(bench, checkout, name)
    silence = Silence(date=date.isoformat(timespec="seconds"), machine=before, idle=figures)
    print_results(table(silence), write_results("idle", date, silence), width=130)


if __name__ == "__main__":
    typer.run(main)
