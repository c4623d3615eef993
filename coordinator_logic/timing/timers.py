"""A group's timers by key, and what each does when it fires.

| key                     | timeout                                               | effect                             |
|-------------------------|-------------------------------------------------------|------------------------------------|
| ``heartbeat-{member}``  | session timeout; 5 minutes for a new classic member   | expels or fences the member        |
| ``join``                | initial delay, later the longest rebalance timeout    | completes the join                 |
| ``sync``                | the longest rebalance timeout, after a join completes | expels members that have not synced|
| ``revocation-{member}`` | the rebalance timeout of a consumer group's member    | fences the member                  |
| ``join-{member}``, ``sync-{member}`` | the same, of a member that speaks the classic protocol | fences the member |
| ``expiry``              | the next tick at which offsets or the group expire    | deletes expired offsets or groups  |

Arming a key that is armed replaces its timer. :class:`~coordinator_logic.turn.Turn` arms them.
"""

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.group import Timer, TimerKind
from coordinator_logic.groups.classic.rebalance import (
    complete_join,
    complete_join_if_all_joined,
    prepare_rebalance,
    rebalance_or_complete_join,
    remove_member,
)
from coordinator_logic.groups.consumer.membership import fence_member
from coordinator_logic.messages import JoinGroupResponse
from coordinator_logic.offsets.expiry import expire
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def wake_time(timer: Timer, started_at: int, config: CoordinatorConfig) -> int:
    """The batch time (ms since the epoch) from which a timer fires when no request follows its deadline."""
    allowance = config.expiry_allowance_ms if timer.kind.has_allowance else 0
    return timer.deadline(started_at) + allowance


def fire(turn: Turn, timer: Timer) -> None:
    """Carry out the effect of a timer, which is no longer among the group's timers."""
    match timer.kind:
        case TimerKind.HEARTBEAT if turn.group.consumer is not None:
            fence_member(turn, timer.member_id, "its session timed out")
        case TimerKind.REVOCATION:
            _expire_revocation(turn, timer)
        case TimerKind.MEMBER_JOIN:
            fence_member(turn, timer.member_id, "it did not join again within the rebalance timeout")
        case TimerKind.MEMBER_SYNC:
            fence_member(turn, timer.member_id, "it did not sync within the rebalance timeout")
        case TimerKind.HEARTBEAT:
            _expire_session(turn, timer.member_id)
        case TimerKind.INITIAL_JOIN:
            _end_initial_delay(turn, timer)
        case TimerKind.JOIN:
            complete_join(turn)
        case TimerKind.SYNC:
            _expire_sync(turn, timer.generation)
        case TimerKind.EXPIRY:
            expire(turn)


def _expire_revocation(turn: Turn, timer: Timer) -> None:
    consumer = turn.group.consumer
    member = None if consumer is None else consumer.members.get(timer.member_id)
    if member is not None and member.epoch == timer.generation:
        fence_member(turn, member.member_id, "it did not revoke its partitions within the rebalance timeout")


def _expire_session(turn: Turn, member_id: str) -> None:
    group = turn.group
    if member_id in group.pending_joins:
        remove_member(turn, member_id, "the member id was not used in time")
        complete_join_if_all_joined(turn, ends_initial_delay=True)
        return
    member = group.members.get(member_id)
    if member is None or member.is_exempt_from_expiry:
        return
    expired = "its first join took too long" if member.is_new else "its session timed out"
    turn.reply_to_parked_join(member, JoinGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID))
    remove_member(turn, member_id, expired)
    rebalance_or_complete_join(turn, f"member {member_id} was removed: {expired}", ends_initial_delay=True)


def _end_initial_delay(turn: Turn, timer: Timer) -> None:
    """Complete the join, or extend the delay if new members joined and the rebalance timeout allows it (KIP-134)."""
    group = turn.group
    if not (group.new_member_added and timer.remaining_ms):
        complete_join(turn)
        return
    group.new_member_added = False
    delay = min(turn.config.group_initial_rebalance_delay_ms, timer.remaining_ms)
    turn.arm_initial_join(delay, max(timer.remaining_ms - timer.timeout_ms, 0))


def _expire_sync(turn: Turn, generation: int) -> None:
    group = turn.group
    synced_in_time = generation != group.generation or not group.pending_syncs
    if synced_in_time or group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
        return
    late = list(group.pending_syncs)
    for member_id in late:
        turn.cancel_heartbeat(member_id)
        remove_member(turn, member_id, "did not sync within the rebalance timeout")
    prepare_rebalance(turn, f"{len(late)} member(s) did not sync in generation {generation}")
