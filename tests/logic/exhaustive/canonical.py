"""The canonical form of a group: two groups with the same form are one state of the search.

The form omits the following, on which no handler and no timer depends:

* Member ids and instance ids. Members are numbered in the order of the group, which decides who leads next.
* The generation. Requests are compared with the current one only, and the search sends both current and other
  generations. Each transition checks that the generation grows by one.
* The clock. A deadline is kept as the time that remains. If the coordinator can restart, the whole timeout is kept
  too, because a restart begins it again.
* The timer of a member that was rejected by a full group: it does nothing when it fires.
* Correlation ids, log positions, incarnation, sequence, client ids and hosts, and the time of the last transition,
  which only the expiry of offsets uses (see :mod:`.test_offsets`).
* The bytes of assignments. The form keeps whether there are any, because revoking them is recorded only then. Each
  transition checks that they belong to the generation.
* Offsets. Commits in this search are too large to be stored; they only renew sessions.

Scopes with ``ordered=False`` also omit something that matters: which of several timers with the same deadline was
armed first. The first state found then represents all states that differ only in this order, which makes searches
with three members affordable. Scopes with two members and the large scopes keep the order.
"""

from collections.abc import Hashable

from coordinator_logic.group import Group
from coordinator_logic.group.timer import HEARTBEAT
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.states import State
from tests.logic.exhaustive.scope import UNIT_MS, Scope
from tests.support.parts import classic

ABSENT = "absent"


def canonical(group: Group | None, now: int, started_at: int, scope: Scope) -> Hashable:
    """Return the canonical form of a group at a time, for a coordinator that started at a time (ms since the epoch)."""
    if group is None:
        return ABSENT
    number = {member_id: i for i, member_id in enumerate([*classic(group).members, *classic(group).pending_joins])}
    return (
        group.state,
        group.state is State.PREPARING_REBALANCE and group.part.previous_state is State.EMPTY,
        number.get(classic(group).leader or ""),
        classic(group).protocol_name,
        tuple(_member(member) for member in classic(group).members.values()),
        len(classic(group).pending_joins),
        tuple(sorted(number.get(member_id, -1) for member_id in classic(group).pending_syncs)),
        classic(group).new_member_added,
        _timers(group, now, started_at, number, scope),
    )


def _member(member: Member) -> Hashable:
    return (
        member.is_static,
        member.is_new,
        member.parked_join is not None,
        member.parked_sync is not None,
        member.protocols[0].name,
        bool(member.assignment),
    )


def _timers(group: Group, now: int, started_at: int, number: dict[str, int], scope: Scope) -> Hashable:
    of_members = [t for t in group.timers.values() if t.kind is not HEARTBEAT or t.member_id in number]
    due = sorted(of_members, key=lambda timer: timer.deadline(started_at))
    if not scope.ordered:
        due.sort(key=lambda timer: (timer.deadline(started_at), timer.kind, number.get(timer.member_id, -1)))
    return tuple(
        (
            timer.kind,
            timer.deadline(started_at) - now,
            number.get(timer.member_id, -1),
            timer.remaining_ms // UNIT_MS,
            scope.restarts and timer.timeout_ms,
        )
        for timer in due
    )
