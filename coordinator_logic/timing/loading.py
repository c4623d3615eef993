"""Load a group that was folded from its journal: the working memory that records do not hold.

A broker that loads a group knows what the group's last record says. It gives every member a full session, so that those
that are gone expire, and it has forgotten the requests that were parked: their clients ask again. Source: ``onLoaded``
in Kafka's ``GroupMetadataManager``. A broker writes a group only when it is Stable or Empty, so a rebalance that was in
progress did not happen. Here the journal has every state. A group in a rebalance stays in it, with the timer of that
state: members that do not ask again in time are removed, as if they had never asked.
"""

from collections.abc import Sequence

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Request
from coordinator_logic.group import Group, Timer, TimerKind
from coordinator_logic.groups.classic.rebalance import ABSENT_MEMBERS_CHECK_MS
from coordinator_logic.groups.consumer.membership import arm_timers_of_members
from coordinator_logic.offsets.expiry import schedule
from coordinator_logic.states import State
from coordinator_logic.turn import FiredTimer, Output, Turn


def load(group: Group, now: int, config: CoordinatorConfig) -> None:
    """Give a group the working memory of one that was loaded at ``now``, ms since the epoch.

    What it had is dropped: parked requests, handed-out member ids, timers.
    """
    now = max(now, group.clock)
    _forget(group)
    group.clock = group.sessions_from = now
    # No record is made, so the turn's origin is not used.
    turn = Turn(group.group_id, group, now, FiredTimer(Timer(TimerKind.HEARTBEAT, now, 0), now), config, Output())
    for member in group.members.values():
        turn.arm_session(member)
    if group.consumer is not None:
        arm_timers_of_members(turn)
    if group.state is State.PREPARING_REBALANCE:
        _await_joins(turn)
    elif group.state is State.COMPLETING_REBALANCE:
        # Members wait for the leader's assignment. Which of them had asked for it is not known.
        group.pending_syncs = dict.fromkeys(group.members)
        turn.arm_sync()
    schedule(turn)


def _forget(group: Group) -> None:
    group.timers = {}
    group.pending_joins = {}
    group.pending_syncs = {}
    for member in group.members.values():
        member.parked_join = member.parked_sync = None
        # Only its first request, which is forgotten, makes a member new.
        member.is_new = False
    # The index counts what was parked.
    group.__dict__.pop("member_index", None)
    group.join_answered_at = group.checked_until = group.next_check_at = group.append_distance = 0


def _await_joins(turn: Turn) -> None:
    group = turn.group
    if group.previous_state is not State.EMPTY:
        turn.arm_join(at_least_ms=ABSENT_MEMBERS_CHECK_MS)
        return
    delay = turn.config.group_initial_rebalance_delay_ms
    # The members count as new once more: the delay is extended once, in which they can ask again.
    group.new_member_added = True
    turn.arm_initial_join(delay, max(group.rebalance_timeout_ms - delay, 0))


def without_applied(group: Group, requests: Sequence[Request]) -> Sequence[Request]:
    """The requests that the journal from which the group was rebuilt does not name.

    The group forgets the bound of a partition when it gets a request behind it: earlier ones cannot follow.
    """
    bounds = group.applied_until
    new = [request for request in requests if request.place.offset >= bounds.get(request.place.partition, 0)]
    if new:
        passed = {request.place.partition for request in new}
        group.applied_until = {partition: end for partition, end in bounds.items() if partition not in passed}
    return new
