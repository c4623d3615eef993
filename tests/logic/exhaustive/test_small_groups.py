"""Small groups, all of them: no move breaks the contract or an invariant, everything is reached, nothing gets stuck.

The scopes are chosen so that all of it takes well under a minute of one core; ``EXHAUSTIVE=large`` adds some
that take many.
"""

import os
from functools import cache

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.group import Group, TimerKind
from coordinator_logic.records import GroupDeleted, MembershipRecord
from coordinator_logic.states import TRANSITIONS, State
from tests.logic.exhaustive.moves import TICK, list_of
from tests.logic.exhaustive.scope import Scope
from tests.logic.exhaustive.search import Search

SCOPES = {
    "one of each kind": Scope(room=2, instances=("a",), restarts=True),
    "votes": Scope(room=2, instances=("a",), lists=2, ordered=False),
    "three dynamic": Scope(room=3, old_joins=True),
    "two static": Scope(room=2, instances=("a", "b"), dynamic=False, rebalance=3),
    "two dynamic and a static": Scope(room=3, instances=("a",), session=1, ordered=False),
    "two static and a dynamic": Scope(room=3, instances=("a", "b"), session=1, ordered=False),
    "long rebalances": Scope(room=2, session=1, rebalance=4, old_joins=True),
    "no delay": Scope(room=2, instances=("a",), delay=0, session=1),
    "room for two of three": Scope(room=3, max_size=2),
    "room for one of two": Scope(room=2, instances=("a",), max_size=1),
}
LARGE_SCOPES = {
    "two dynamic and a static, ordered": Scope(room=3, instances=("a",), session=1),
    "two static and a dynamic, longer sessions": Scope(room=3, instances=("a", "b"), ordered=False),
    "votes, long rebalances": Scope(room=2, instances=("a",), lists=2, rebalance=3, restarts=True),
}
if os.environ.get("EXHAUSTIVE") == "large":
    SCOPES |= LARGE_SCOPES

REACHED_BY_NO_REQUEST = {
    (State.PREPARING_REBALANCE, State.DEAD),
    (State.COMPLETING_REBALANCE, State.DEAD),
    (State.STABLE, State.DEAD),
    (State.DEAD, State.DEAD),
}
"""A group with members can be neither deleted nor expire. It is Dead only as the stand-in for one whose snapshot cannot
be read, and that stand-in is made outside the state machine and stays as it is."""

ERRORS = {
    "JoinGroup": {0, -1, 23, 24, 25, 26, 79, 81, 82},
    "SyncGroup": {0, 22, 23, 24, 25, 27, 82},
    "Heartbeat": {0, 22, 24, 25, 27, 82},
    "LeaveGroup": {0, 24, 25, 82},
    "OffsetCommit": {12, 22, 25, 27, 69, 82},
    "DeleteGroups": {0, 16, 68, 69},
    "DescribeGroups": {0},
}
"""Every error that these APIs have for a group that can be read. OffsetCommit's 0 is in :mod:`.test_offsets`."""


@cache
def explored(name: str) -> Search:
    """All of a scope; each is searched once."""
    return Search(SCOPES[name]).run()


def by_scope(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", names or SCOPES)


@by_scope()
def test_no_move_in_any_state_breaks_the_contract_or_an_invariant(name: str) -> None:
    search = explored(name)
    assert search.reached.states == {None, *State} - {State.DEAD}
    assert len(search.edges) == len(search.worlds)


@by_scope()
def test_every_state_and_transition_that_requests_and_timers_can_bring_about_is_reached(name: str) -> None:
    legal = {(current, target) for current, targets in TRANSITIONS.items() for target in targets}
    assert explored(name).reached.transitions == legal - REACHED_BY_NO_REQUEST


def test_every_error_every_timer_and_every_record_is_seen() -> None:
    answers: dict[str, set[Error]] = {}
    timers: set[TimerKind] = set()
    records: set[type] = set()
    for name in SCOPES:
        reached = explored(name).reached
        timers |= reached.timers
        records |= reached.records
        for api, error in reached.answers:
            answers.setdefault(api, set()).add(error)
    assert answers == ERRORS
    assert timers == set(TimerKind)
    assert records == set(MembershipRecord.__args__)
    assert GroupDeleted in records


# ---- where it leads --------------------------------------------------------------------------------------------


@by_scope()
def test_silence_ends_every_group(name: str) -> None:
    """From no state can time pass forever: members fall out, the group is Empty, and in the end it is forgotten."""
    search = explored(name)
    ends = {0}
    for state in range(len(search.worlds)):
        silent, passed = state, []
        while silent not in ends:
            assert silent not in passed, f"nothing ends {' > '.join(search.way_to(state))}"
            passed.append(silent)
            silent = search.edges[silent][TICK]
        ends |= set(passed)


@by_scope(
    "one of each kind", "votes", "three dynamic", "no delay", "two dynamic and a static", "two static and a dynamic"
)
def test_members_that_do_what_they_are_told_become_stable_and_nobody_is_lost(name: str) -> None:
    search = explored(name)
    for state, world in enumerate(search.worlds):
        start = world.decoded()
        if start is None or not start.members:
            continue
        reached, group = state, start
        for _ in range(20):
            if group.state is State.STABLE:
                break
            reached = search.edges[reached][_obedient_move(group)]
            after = search.worlds[reached].decoded()
            assert after is not None
            group = after
        way = " > ".join(search.way_to(state))
        assert group.state is State.STABLE, f"stuck: {way}"
        assert len(group.members) == len(start.members), f"lost: {way}"


def _obedient_move(group: Group) -> str:
    """Who is not gathered rejoins, who leads syncs; where all wait, time must pass."""
    for i, member in enumerate(group.members.values()):
        if group.state is State.PREPARING_REBALANCE and member.parked_join is None:
            return f"member {i} rejoins, list {list_of(member)}"
        if group.state is State.COMPLETING_REBALANCE and member.member_id == group.leader:
            return f"member {i} syncs"
    return TICK


@by_scope()
def test_what_is_sent_twice_leads_where_it_led_once(name: str) -> None:
    """All that differs is which of two parked requests is answered. (A rejoin is no such thing: a leader's begins a
    rebalance each time.)"""
    search = explored(name)
    for state, edges in enumerate(search.edges):
        for move, arrived in edges.items():
            if any(word in move for word in (" syncs", " heartbeats", " commits")):
                assert search.edges[arrived][move] == arrived, " > ".join([*search.way_to(state), move, move])
