"""A replay, or a replay and a what-if side by side, as lines of text and as data."""

from collections.abc import Iterator
from typing import Any

import msgspec

from streaming.explain.replay.world import ReplayFigures, World
from streaming.explain.story.words import clock

Row = tuple[str, str, str]

_NAMES = {
    "rebalances": "Rebalances",
    "generations": "Generations",
    "not_stable_ms": "Not Stable, s",
    "members_added": "Members added",
    "members_expelled": "Members expelled",
    "refused_commits": "Commits refused",
    "refused_requests": "Requests refused",
}


def timeline_rows(lived: World, other: World | None = None) -> Iterator[Row]:
    """The decisions in the order of their time: the time, what happened, what would have happened."""
    sides = [(one, 0) for one in lived.decisions] + [(one, 1) for one in (other.decisions if other else [])]
    for decision, side in sorted(sides, key=lambda each: each[0].time):
        text = f"{decision.text} ({decision.cause})"
        yield (clock(decision.time), "", text) if side else (clock(decision.time), text, "")


def figure_rows(lived: World, other: World | None = None) -> Iterator[Row]:
    """The figures: the name, as it was, as it would have been."""
    for field, name in _NAMES.items():
        yield name, _figure(lived.figures, field), "" if other is None else _figure(other.figures, field)


def as_data(lived: World, other: World | None = None) -> dict[str, Any]:
    """The same for tools; ``whatIf`` is null without one."""
    return {"lived": _world(lived), "whatIf": None if other is None else _world(other)}


def _world(world: World) -> dict[str, Any]:
    return {"figures": msgspec.to_builtins(world.figures), "decisions": [one._asdict() for one in world.decisions]}


def _figure(figures: ReplayFigures, field: str) -> str:
    value: int = getattr(figures, field)
    return f"{value / 1000:.1f}" if field.endswith("_ms") else str(value)
