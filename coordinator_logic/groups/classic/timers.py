"""The timers of a classic group by key, and what each does when it fires.

| key                    | timeout                                            | effect                               |
|------------------------|----------------------------------------------------|--------------------------------------|
| ``heartbeat-{member}`` | session timeout; 5 minutes for a new member        | expels the member                    |
| ``join``               | initial delay, later the longest rebalance timeout | completes the join                   |
| ``sync``               | the longest rebalance timeout, after a join        | expels members that have not synced  |
"""

from coordinator_logic.group.timer import Effect, Timer
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.turn import Turn

INITIAL_JOIN, JOIN, SYNC = "initial-join", "join", "sync"
"""The kinds of timers that only a classic group has."""


def arm_session(turn: Turn, member: Member) -> None:
    """Restart a member's session with its session timeout."""
    turn.arm_heartbeat(member.member_id, member.session_timeout_ms)


def arm_initial_join(turn: Turn, delay_ms: int, remaining_ms: int) -> None:
    """Start the initial delay, which can be extended by ``remaining_ms`` (KIP-134)."""
    timer = Timer(INITIAL_JOIN, turn.now, delay_ms, remaining_ms=remaining_ms, effect=Effect.ENDS_DELAY)
    turn.arm("join", timer)


def arm_join(turn: Turn, at_least_ms: int = 0) -> None:
    """Start the time to join: the members' longest rebalance timeout, or ``at_least_ms`` if that is longer."""
    timeout = max(turn.group.part_as(ClassicGroup).rebalance_timeout_ms, at_least_ms)
    turn.arm("join", Timer(JOIN, turn.now, timeout, effect=Effect.COMPLETES_JOIN))


def arm_sync(turn: Turn) -> None:
    """Start the time to sync for this generation: its members' longest rebalance timeout."""
    group = turn.group.part_as(ClassicGroup)
    turn.arm("sync", Timer(SYNC, turn.now, group.rebalance_timeout_ms, generation=group.generation))
