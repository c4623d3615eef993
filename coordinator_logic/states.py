"""The states of groups of all types, as Kafka names them, and the defects that a state can show.

Which states a type has, and how it gets from one to another, is in the type's room.
"""

from collections.abc import Iterable
from enum import Enum


class State(Enum):
    """A group's state; the value is its name on the wire."""

    EMPTY = "Empty"
    """The group has no members. It may have offsets: those of a group that every member has left, or of a "simple"
    group that only stores offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    """Every member has what it is to have."""
    DEAD = "Dead"
    """The group was deleted, or its stored state cannot be read. It never leaves this state."""
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"


class IllegalTransition(Exception):
    """A transition that is not in the type's table: a defect of the coordinator, which no request can cause."""

    def __init__(self, group_id: str, current: State, target: State, legal: Iterable[State]) -> None:
        names = ", ".join(state.value for state in legal) or "none"
        super().__init__(
            f"group {group_id!r} cannot go from {current.value} to {target.value} (legal from there: {names})"
        )


class IllegalState(Exception):
    """A group whose fields contradict each other: a defect of the coordinator, which no request can cause."""
