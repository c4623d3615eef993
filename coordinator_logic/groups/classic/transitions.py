"""The states of a classic group and the legal transitions between them.

* **Empty**: the group has no members. It may have offsets: those of a group that every member has left, or of a
  "simple" group that only stores offsets.
* **PreparingRebalance**: the group is collecting its members. JoinGroup requests are parked until every known member
  has sent one or the rebalance timeout has passed. Heartbeats are answered REBALANCE_IN_PROGRESS, on which the
  other members rejoin.
* **CompletingRebalance**: the generation has begun and every member knows it; SyncGroup requests are parked until the
  leader's brings the assignment.
* **Stable**: every member can fetch its assignment. The group stays Stable until a member joins, leaves, changes or
  expires.
* **Dead**: the group was deleted, or its stored state cannot be read. It never leaves this state.

The two tables below are the only definition of the transitions; the diagram in docs/architecture.md is generated from
them.

Source: KIP-62, KIP-134 (initial delay), and the state machine of Kafka's classic groups.
"""

from coordinator_logic.states import IllegalTransition, State

TRANSITIONS: dict[State, dict[State, str]] = {
    State.EMPTY: {
        State.PREPARING_REBALANCE: "a member joins",
        State.DEAD: "deleted or expired",
    },
    State.PREPARING_REBALANCE: {
        State.EMPTY: "no member is left",
        State.COMPLETING_REBALANCE: "all members have joined, or the timeout has passed",
        State.DEAD: "state unreadable",
    },
    State.COMPLETING_REBALANCE: {
        State.PREPARING_REBALANCE: "a member joins, changes, leaves or expires",
        State.STABLE: "the leader syncs",
        State.DEAD: "state unreadable",
    },
    State.STABLE: {
        State.PREPARING_REBALANCE: "a member joins, changes, leaves or expires; offsets are reset",
        State.DEAD: "state unreadable",
    },
    State.DEAD: {
        State.DEAD: "deleted again",
    },
}
"""By state, the states that may follow it, each with the reason."""

CAN_REBALANCE = frozenset({State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE})
"""The states in which a rebalance can begin: in the others one is in progress, or the group is Dead."""


def check_transition(group_id: str, current: State, target: State) -> None:
    """Raise :class:`IllegalTransition` unless ``target`` may follow ``current``."""
    legal = TRANSITIONS.get(current, {})
    if target not in legal:
        raise IllegalTransition(group_id, current, target, legal)
