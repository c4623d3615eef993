"""When two groups are the same to the search: a group without what can grow, and without names.

Dropped, because no handler and no timer decides by it:

* names of members and instance ids: only who is the same as whom counts, so they are numbered in the order in which
  the group holds them (that order itself counts: it decides who leads next);
* the generation: requests only ask whether theirs is the current one, and every search sends both kinds. That
  it grows by one is checked on each transition, where the numbers are real;
* the clock: of a deadline only what is left until it is kept. Where the coordinator can start anew, the whole timeout
  is kept too, since a start begins it again;
* the timer of one who was refused a place: it stays behind, and does nothing when it fires;
* correlation ids, places in the log, incarnation, sequence, the time of the last transition (only the expiry of
  offsets asks for it, see :mod:`.test_offsets`), client ids and hosts;
* the bytes of assignments, of which only is kept whether there are any: that decides whether taking them back is
  recorded. That they are those of the generation is checked on each transition;
* offsets: in this search commits are too large to be stored. They are signs of life, and that is what counts.

One thing that does decide is dropped in scopes that say so (``ordered=False``): which of several timers that are due
at the same time was armed first. There, states that differ in that only are represented by the one that was reached
first. It makes three members affordable; the scopes with two keep the order, and so do the large ones.
"""

from collections.abc import Hashable

from coordinator_logic.group import Group, Member, TimerKind
from coordinator_logic.states import State
from tests.logic.exhaustive.scope import UNIT_MS, Scope

ABSENT = "absent"


def canonical(group: Group | None, now: int, started_at: int, scope: Scope) -> Hashable:
    """What the search remembers of a group, at a time (ms) and after a start of the coordinator (ms)."""
    if group is None:
        return ABSENT
    number = {member_id: i for i, member_id in enumerate([*group.members, *group.pending_joins])}
    return (
        group.state,
        group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY,
        number.get(group.leader or ""),
        group.protocol_name,
        tuple(_member(member) for member in group.members.values()),
        len(group.pending_joins),
        tuple(sorted(number.get(member_id, -1) for member_id in group.pending_syncs)),
        group.new_member_added,
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
    of_somebody = [t for t in group.timers.values() if t.kind is not TimerKind.HEARTBEAT or t.member_id in number]
    due = sorted(of_somebody, key=lambda timer: timer.deadline(started_at))
    if not scope.ordered:
        due.sort(key=lambda timer: (timer.deadline(started_at), timer.kind.value, number.get(timer.member_id, -1)))
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
