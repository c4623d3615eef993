"""Entry point of `make chaos-broken`: plant each defect, and play runs with the fault that shows it until one is not
good."""

import signal
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tests.bench.environment import RESULTS
from tests.recovery.chaos.broken.defects import DEFECTS, SHOWN_BY
from tests.recovery.chaos.campaign import Campaign
from tests.recovery.chaos.plan import make_plan


def main(
    runs: Annotated[
        int, typer.Option(help="How many runs may miss a defect before it counts as not found.", min=1)
    ] = 5,
    seed: Annotated[int, typer.Option(help="The seed of each defect's first run.", min=0)] = 1,
    only: Annotated[str | None, typer.Option(help=f"Plant this defect alone: {', '.join(DEFECTS)}.")] = None,
    folder: Annotated[Path, typer.Option(help="Gets the files of the runs that show a defect.")] = RESULTS
    / "chaos-broken",
) -> None:
    """Exit with 1 if a defect is not found."""
    if only is not None and only not in DEFECTS:
        raise typer.BadParameter(f"there is no defect {only}: {', '.join(DEFECTS)}")
    console = Console(stderr=True)
    report = partial(console.print, markup=False, highlight=False)
    # SIGTERM must end the processes, too: as an exception it runs their exit handlers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    planted = list(DEFECTS) if only is None else [only]
    lines = {name: _search(name, range(seed, seed + runs), folder / name, report) for name in planted}
    for name, line in lines.items():
        print(f"{name}: {line or 'NOT FOUND'}")
    if None in lines.values():
        raise typer.Exit(1)


def _search(name: str, seeds: range, folder: Path, report: partial[None]) -> str | None:
    """What shows a defect first; None if nothing does."""
    report(f"---- {name}")
    with Campaign(folder, report, name) as campaign:
        for seed in seeds:
            verdict = campaign.play(make_plan(seed, SHOWN_BY[name]))
            if not verdict.is_good:
                # A violation says more than what it has led to.
                return f"seed {seed}: {[*verdict.violations, verdict.failure][0]}"
    return None


if __name__ == "__main__":
    typer.run(main)
