"""The keyed deadlines of a group, and what each does when it fires.

| key                    | armed                                                    | fires                         |
|------------------------|----------------------------------------------------------|-------------------------------|
| ``heartbeat-{member}`` | session timeout; 5 minutes for a new member              | the member is expelled        |
| ``join``               | initial delay, later the longest rebalance timeout       | the join is completed         |
| ``sync``               | the longest rebalance timeout, when a generation begins  | who has not synced is removed |
| ``expiry``             | the next tick at which an offset or the group can expire | both are forgotten            |

Arming a key again replaces its timer. Arming is done by :class:`~coordinator_logic.turn.Turn`.
"""

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.expiry import expire
from coordinator_logic.group import Group, Timer, TimerKind
from coordinator_logic.messages import JoinGroupResponse
from coordinator_logic.rebalance import (
    complete_join,
    maybe_rebalance_or_complete_join,
    prepare_rebalance,
    remove_member,
)
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def earliest(group: Group, started_at: int) -> tuple[str, Timer] | None:
    """The key and timer that are due first, given when the coordinator was last started (ms)."""
    first: tuple[str, Timer] | None = None
    soonest = 0
    for key, timer in group.timers.items():
        # Asked of every timer of every group that a batch touches: the call is for the few that a start puts off.
        armed_at = timer.armed_at
        deadline = timer.deadline(started_at) if armed_at < started_at else armed_at + timer.timeout_ms
        if first is None or deadline < soonest:
            first, soonest = (key, timer), deadline
    return first


def wake_time(timer: Timer, started_at: int, config: CoordinatorConfig) -> int:
    """From which batch time on a timer may fire without an event.

    One that takes something away waits the allowance more, for requests that are appended but not read yet.
    """
    allowance = config.expiry_allowance_ms if timer.kind.takes_something_away else 0
    return timer.deadline(started_at) + allowance


def fire(turn: Turn, timer: Timer) -> None:
    """Do what the timer is for; it has been taken out of the group's timers already."""
    match timer.kind:
        case TimerKind.HEARTBEAT:
            _expire_heartbeat(turn, timer.member_id)
        case TimerKind.INITIAL_JOIN:
            _end_initial_delay(turn, timer)
        case TimerKind.JOIN:
            complete_join(turn)
        case TimerKind.SYNC:
            _expire_sync(turn, timer.generation)
        case TimerKind.EXPIRY:
            expire(turn)


def _expire_heartbeat(turn: Turn, member_id: str) -> None:
    group = turn.group
    if member_id in group.pending_joins:
        remove_member(turn, member_id, "the member id was not used in time")
        _complete_join_if_all_joined(turn)
        return
    member = group.members.get(member_id)
    if member is None or member.is_excused:
        return
    limit = "its first join took too long" if member.is_new else "its session timed out"
    turn.reply_to_parked_join(member, JoinGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID))
    remove_member(turn, member_id, limit)
    if group.can_rebalance:
        maybe_rebalance_or_complete_join(turn, f"member {member_id} was removed: {limit}")
    else:
        _complete_join_if_all_joined(turn)


def _complete_join_if_all_joined(turn: Turn) -> None:
    # Unlike maybe_complete_join this does not wait for the initial delay: Kafka does not, either.
    if turn.group.state is State.PREPARING_REBALANCE and turn.group.all_members_joined:
        complete_join(turn)


def _end_initial_delay(turn: Turn, timer: Timer) -> None:
    """End the initial delay, or extend it if members came meanwhile and the rebalance timeout allows (KIP-134)."""
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
