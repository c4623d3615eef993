"""Print the run of a script: its requests, and the responses of both sides."""

from typing import Any

import msgspec

from tests.oracle.sides.lockstep import Exchange, ScriptRun


def transcript(run: ScriptRun) -> str:
    """Return the transcript of a run, and the script to run it again."""
    lines = [f"script {run.script.name}: {run.difference or run.inconclusive or 'no difference'}"]
    for exchange in run.exchanges:
        lines += _lines(exchange)
    lines += ["the script:", run.script.text()]
    return "\n".join(lines)


def _lines(exchange: Exchange) -> list[str]:
    lines = [f"{exchange.at_ms:>6} ms  {exchange.description}"]
    for number in sorted({*exchange.ours, *exchange.theirs}):
        ours, theirs = exchange.ours.get(number), exchange.theirs.get(number)
        if ours == theirs:
            lines.append(f"            both respond to #{number}: {_text(ours)}")
        else:
            lines.append(f"          BROKER responds to #{number}: {_text(theirs)}")
            lines.append(f"            OURS responds to #{number}: {_text(ours)}")
    if exchange.our_group != exchange.their_group:
        lines.append(f"          BROKER's group: {_text(exchange.their_group)}")
        lines.append(f"            OURS's group: {_text(exchange.our_group)}")
    elif exchange.our_group is not None:
        lines.append(f"            both groups are {exchange.our_group['groups'][0]['groupState']}")
    return lines


def _text(answer: Any) -> str:
    return "no response" if answer is None else msgspec.json.encode(answer).decode()
