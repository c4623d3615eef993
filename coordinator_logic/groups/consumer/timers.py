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


def arm_revocation(turn: Turn, member_id: str, epoch: int, timeout_ms: int) -> None:
    """Start the time in which a member must leave an epoch by revoking partitions."""
    turn.arm(f"revocation-{member_id}", Timer(REVOCATION, turn.now, timeout_ms, member_id, epoch))


def cancel_revocation(turn: Turn, member_id: str) -> None:
    """Cancel the time in which a member must revoke partitions."""
    turn.cancel(f"revocation-{member_id}")


def arm_member_join_if_absent(turn: Turn, member_id: str, timeout_ms: int) -> None:
    """Start the time in which a classic member must join again, unless it is running."""
    key = f"join-{member_id}"
    if key not in turn.group.timers:
        turn.arm(key, Timer(MEMBER_JOIN, turn.now, timeout_ms, member_id))


def cancel_member_join(turn: Turn, member_id: str) -> None:
    """Cancel the time in which a classic member must join again."""
    turn.cancel(f"join-{member_id}")


def arm_member_sync(turn: Turn, member_id: str, timeout_ms: int) -> None:
    """Start the time in which a classic member must fetch its assignment."""
    turn.arm(f"sync-{member_id}", Timer(MEMBER_SYNC, turn.now, timeout_ms, member_id))


def cancel_member_sync(turn: Turn, member_id: str) -> None:
    """Cancel the time in which a classic member must fetch its assignment."""
    turn.cancel(f"sync-{member_id}")


def cancel_timers_of(turn: Turn, member_id: str) -> None:
    """Cancel all timers of a member."""
    turn.cancel_heartbeat(member_id)
    cancel_revocation(turn, member_id)
    cancel_member_join(turn, member_id)
    cancel_member_sync(turn, member_id)
