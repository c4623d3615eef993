"""The timers of a consumer group by key; each fences its member when it fires.

| key                     | timeout                                                                        |
|-------------------------|--------------------------------------------------------------------------------|
| ``heartbeat-{member}``  | the session timeout                                                            |
| ``revocation-{member}`` | the rebalance timeout, in which the member must revoke partitions              |
| ``join-{member}``       | the same, in which a member that speaks the classic protocol must join again   |
| ``sync-{member}``       | the same, in which such a member must fetch its assignment                     |
"""

from coordinator_logic.group.timer import Timer
from coordinator_logic.turn import Turn

REVOCATION, MEMBER_JOIN, MEMBER_SYNC = "revocation", "member-join", "member-sync"
"""The kinds of timers that only a consumer group has."""

_KEYS = {REVOCATION: "revocation", MEMBER_JOIN: "join", MEMBER_SYNC: "sync"}


def arm_timer(turn: Turn, kind: str, member_id: str, timeout_ms: int, epoch: int = 0) -> None:
    """Start the time in which a member must revoke partitions, and so leave an epoch, join again, or sync."""
    turn.arm(f"{_KEYS[kind]}-{member_id}", Timer(kind, turn.now, timeout_ms, member_id, epoch))


def arm_member_join_if_absent(turn: Turn, member_id: str, timeout_ms: int) -> None:
    """Start the time in which a classic member must join again, unless it is running."""
    if f"{_KEYS[MEMBER_JOIN]}-{member_id}" not in turn.group.timers:
        arm_timer(turn, MEMBER_JOIN, member_id, timeout_ms)


def cancel_timer(turn: Turn, kind: str, member_id: str) -> None:
    """Cancel a timer of a member, if it is armed."""
    turn.cancel(f"{_KEYS[kind]}-{member_id}")


def cancel_timers_of(turn: Turn, member_id: str) -> None:
    """Cancel all timers of a member."""
    turn.cancel_heartbeat(member_id)
    for kind in _KEYS:
        cancel_timer(turn, kind, member_id)
