"""A run of a script as text: what was sent, and what either side answered."""

from typing import Any

import msgspec

from tests.oracle.lockstep import Exchange, Played


def conversation(played: Played) -> str:
    """The run as a conversation, and the script to play it again."""
    lines = [f"script {played.script.name}: {played.difference or played.doubt or 'no difference'}"]
    for exchange in played.exchanges:
        lines += _lines(exchange)
    lines += ["to play it again:", played.script.text()]
    return "\n".join(lines)


def _lines(exchange: Exchange) -> list[str]:
    lines = [f"{exchange.at_ms:>6} ms  {exchange.what}"]
    for number in sorted({*exchange.ours, *exchange.theirs}):
        ours, theirs = exchange.ours.get(number), exchange.theirs.get(number)
        if ours == theirs:
            lines.append(f"            both answer #{number}: {_text(ours)}")
        else:
            lines.append(f"          BROKER answers #{number}: {_text(theirs)}")
            lines.append(f"            OURS answers #{number}: {_text(ours)}")
    if exchange.our_group != exchange.their_group:
        lines.append(f"          BROKER's group: {_text(exchange.their_group)}")
        lines.append(f"            OURS's group: {_text(exchange.our_group)}")
    elif exchange.our_group is not None:
        lines.append(f"            both are now {exchange.our_group['groups'][0]['groupState']}")
    return lines


def _text(answer: Any) -> str:
    return "nothing" if answer is None else msgspec.json.encode(answer).decode()
