"""The classic group of a turn."""

from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.turn import Turn


def classic_of(turn: Turn) -> ClassicGroup:
    """The part of the turn's group, for code that knows that it is a classic one."""
    part = turn.group.part
    assert isinstance(part, ClassicGroup), f"group {turn.group_id!r} is not a classic group"
    return part


def classic_or_none(turn: Turn) -> ClassicGroup | None:
    """The part of the turn's group; None if the group does not exist, or is of another type."""
    part = None if turn.existing is None else turn.existing.part
    return part if isinstance(part, ClassicGroup) else None
