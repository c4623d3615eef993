"""The comparison of both sides, and the shortest script with the same difference."""

import json
from typing import Any, NamedTuple

from tests.oracle.consumer.judge import Command, Judge
from tests.oracle.consumer.scripts import Played, play, replay


class Difference(NamedTuple):
    """The first command of a script to which the sides answer differently."""

    number: int
    commands: list[Command]
    ours: dict[str, Any]
    judges: dict[str, Any]

    def text(self) -> str:
        """The commands up to the difference, and both answers."""
        lines = [json.dumps(command) for command in self.commands[: self.number + 1]]
        return "\n".join([*lines, f"ours:     {json.dumps(self.ours)}", f"judge's:  {json.dumps(self.judges)}"])


def compare(judge: Judge, played: Played) -> Difference | None:
    """Return the first difference between our side and the judge, if there is one."""
    for number, (ours, judges) in enumerate(zip(played.answers, judge.ask(played.commands), strict=True)):
        if ours != judges:
            return Difference(number, played.commands, ours, judges)
    return None


def check(judge: Judge, seed: int, length: int) -> Difference | None:
    """Play the script of a seed on both sides; the difference is in a script that is as short as possible."""
    difference = compare(judge, play(seed, length))
    return None if difference is None else shrink(judge, difference)


def shrink(judge: Judge, difference: Difference) -> Difference:
    """Leave out commands as long as the last one still differs."""
    shortest = difference
    commands = difference.commands[: difference.number + 1]
    index = len(commands) - 2
    while index > 0:
        shorter = commands[:index] + commands[index + 1 :]
        found = compare(judge, replay(shorter))
        if found is not None and found.number == len(shorter) - 1:
            commands, shortest = shorter, found
        index -= 1
    return shortest
