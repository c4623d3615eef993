"""Check the history of a run, or convert it for other checkers."""

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tests.recovery.checker.checks import STABLE_WITHIN_MS, check
from tests.recovery.checker.history import read
from tests.recovery.checker.outside import register_to_edn, to_edn, to_porcupine


class Form(StrEnum):
    """What is printed instead of the violations."""

    EDN = "edn"
    KNOSSOS = "knossos"
    PORCUPINE = "porcupine"


def main(
    file: Annotated[Path, typer.Argument(help="The history of a run.", exists=True, dir_okay=False)],
    stable_within_seconds: Annotated[
        float, typer.Option(help="How long after the last disturbance members may be unassigned.")
    ] = STABLE_WITHIN_MS / 1000,
    convert: Annotated[Form | None, typer.Option(help="Print the history in this form, and check nothing.")] = None,
    register: Annotated[
        tuple[str, str, int] | None, typer.Option(help="For knossos and porcupine: group, topic, partition.")
    ] = None,
) -> None:
    """Print what is wrong with a run; exit with 1 if anything is."""
    with file.open("rb") as lines:
        run = read(lines)
    if convert is Form.EDN:
        for line in to_edn(run.events):
            print(line)
        return
    if convert is not None:
        if register is None:
            raise typer.BadParameter(f"{convert} needs --register GROUP TOPIC PARTITION")
        group, topic, partition = register
        if convert is Form.KNOSSOS:
            for line in register_to_edn(run.events, group, (topic, partition)):
                print(line)
        else:
            print(to_porcupine(run.events, group, (topic, partition)).decode())
        return
    violations = check(run.events, run.journal, run.states, stable_within_ms=round(stable_within_seconds * 1000))
    for violation in violations:
        print(violation)
    counts = Counter(event.kind.value for event in run.events)
    print(f"{len(violations)} violation(s) in {len(run.events)} events {dict(counts)} and {len(run.journal)} entries")
    if violations:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
