"""The five states of a group, and everything that is legal between them.

A group lives its life around one question: *who are the members of this generation, and what did the leader
give each of them?*

* **Empty**: no members. Offsets may be there all the same: of a group that all have left, or of a "simple" group
  that only ever stored offsets.
* **PreparingRebalance**: the members are being gathered. JoinGroup requests are parked until every known member
  has sent one, or the time for it is over. Heartbeats are answered REBALANCE_IN_PROGRESS, which is how the
  others learn that they must come back.
* **CompletingRebalance**: the generation has begun, its members and leader are known and have been told; SyncGroup
  requests are parked until the leader's brings the assignment.
* **Stable**: every member can have its assignment. Nothing happens but heartbeats and commits, until somebody
  joins, leaves, changes or falls silent.
* **Dead**: the group was deleted, or its state cannot be read. Nothing leads out of here.

Everything about transitions is in the two tables below; the picture in the README is drawn from them.

Source: KIP-62, KIP-134 (initial delay), and the state machine of Kafka's classic groups.
"""

from enum import Enum


class State(Enum):
    """A group's state; the value is its name on the wire."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: dict[State, dict[State, str]] = {
    State.EMPTY: {
        State.PREPARING_REBALANCE: "a member joins",
        State.DEAD: "deleted or expired",
    },
    State.PREPARING_REBALANCE: {
        State.EMPTY: "no member is left",
        State.COMPLETING_REBALANCE: "all have joined, or time is up",
        State.DEAD: "state unreadable",
    },
    State.COMPLETING_REBALANCE: {
        State.PREPARING_REBALANCE: "a member joins, changes, leaves or falls silent",
        State.STABLE: "the leader syncs",
        State.DEAD: "state unreadable",
    },
    State.STABLE: {
        State.PREPARING_REBALANCE: "a member joins, changes, leaves or falls silent",
        State.DEAD: "state unreadable",
    },
    State.DEAD: {
        State.DEAD: "deleted again",
    },
}
"""From each state, the states that may follow, and what brings the group there."""

CAN_REBALANCE = frozenset({State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE})
"""States in which a rebalance can begin: in the others one is under way, or the group is gone."""


class IllegalTransition(Exception):
    """A transition that the table does not know: a defect of the coordinator, never of a request."""

    def __init__(self, group_id: str, current: State, target: State) -> None:
        legal = ", ".join(state.value for state in TRANSITIONS[current]) or "none"
        super().__init__(
            f"group {group_id!r} cannot go from {current.value} to {target.value} (legal from there: {legal})"
        )


def check_transition(group_id: str, current: State, target: State) -> None:
    """Raise :class:`IllegalTransition` unless ``target`` may follow ``current``."""
    if target not in TRANSITIONS[current]:
        raise IllegalTransition(group_id, current, target)


def mermaid() -> str:
    """The state machine as a Mermaid state diagram, drawn from :data:`TRANSITIONS`."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.EMPTY.value}"]
    for current, targets in TRANSITIONS.items():
        lines += [f"    {current.value} --> {target.value}: {why}" for target, why in targets.items()]
    lines.append(f"    {State.DEAD.value} --> [*]")
    return "\n".join(lines)
