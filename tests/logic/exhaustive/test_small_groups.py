"""Exhaustive tests of group membership: contract and invariants, reachability, and progress."""

from functools import cache

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.group.timer import EXPIRY, HEARTBEAT
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.timers import INITIAL_JOIN, JOIN, SYNC
from coordinator_logic.groups.classic.transitions import TRANSITIONS
from coordinator_logic.records import (
    GroupCreated,
    GroupDeleted,
    MemberRemoved,
    StaticMemberReplaced,
)
from coordinator_logic.states import State
from tests.logic.exhaustive.extent import covered
from tests.logic.exhaustive.moves import TICK, list_of
from tests.logic.exhaustive.scope import Scope
from tests.logic.exhaustive.search import Search
from tests.support.parts import classic

DEFAULT_SCOPES = {
    "one of each kind": Scope(room=2, instances=("a",), restarts=True),
    "votes of dynamic members": Scope(room=2, lists=2, session=1, ordered=False),
    "long rebalances": Scope(room=2, session=1, rebalance=4, old_joins=True),
    "no delay": Scope(room=2, instances=("a",), delay=0, session=1),
    "room for two of three": Scope(room=3, max_size=2),
    "room for one of two": Scope(room=2, instances=("a",), max_size=1),
}
WIDE_SCOPES = {
    "votes": Scope(room=2, instances=("a",), lists=2, ordered=False),
    "three dynamic": Scope(room=3, old_joins=True),
    "two static": Scope(room=2, instances=("a", "b"), dynamic=False, rebalance=3),
    "two dynamic and a static": Scope(room=3, instances=("a",), session=1, ordered=False),
    "two static and a dynamic": Scope(room=3, instances=("a", "b"), session=1, ordered=False),
}
LARGE_SCOPES = {
    "two dynamic and a static, ordered": Scope(room=3, instances=("a",), session=1),
    "two static and a dynamic, longer sessions": Scope(room=3, instances=("a", "b"), ordered=False),
    "votes, long rebalances": Scope(room=2, instances=("a",), lists=2, rebalance=3, restarts=True),
}
SCOPES = covered(DEFAULT_SCOPES, WIDE_SCOPES, LARGE_SCOPES)

IN_TIME = (
    *("one of each kind", "votes of dynamic members", "votes", "three dynamic", "no delay"),
    *("two dynamic and a static", "two static and a dynamic"),
)
"""The scopes in which there is room for all members, and none loses its session while it waits for others."""

REACHED_BY_NO_REQUEST = {
    (State.PREPARING_REBALANCE, State.DEAD),
    (State.COMPLETING_REBALANCE, State.DEAD),
    (State.STABLE, State.DEAD),
    (State.DEAD, State.DEAD),
}
"""Transitions that no request and no timer causes: a group with members can neither be deleted nor expire.

Only the placeholder of a group with an unreadable snapshot is Dead; it is created outside the state machine.
"""

ERRORS = {
    "JoinGroup": {0, -1, 23, 24, 25, 26, 79, 81, 82},
    "SyncGroup": {0, 22, 23, 24, 25, 27, 82},
    "Heartbeat": {0, 22, 24, 25, 27, 82},
    "LeaveGroup": {0, 24, 25, 82},
    "OffsetCommit": {12, 22, 25, 27, 69, 82},
    "DeleteGroups": {0, 16, 68, 69},
    "DescribeGroups": {0},
}
"""Every error code of these APIs for a readable group. OffsetCommit without an error is in :mod:`.test_offsets`."""


@cache
def explored(name: str) -> Search:
    """Search a scope; each is searched once."""
    return Search(SCOPES[name]).run()


def by_scope(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", names or SCOPES)


@by_scope()
def test_no_move_in_any_state_breaks_the_contract_or_an_invariant(name: str) -> None:
    search = explored(name)
    assert search.reached.states == {None, *TRANSITIONS} - {State.DEAD}
    assert len(search.edges) == len(search.concrete_states)


@by_scope()
def test_every_transition_that_requests_and_timers_can_cause_is_reached(name: str) -> None:
    legal = {(current, target) for current, targets in TRANSITIONS.items() for target in targets}
    assert explored(name).reached.transitions == legal - REACHED_BY_NO_REQUEST


def test_every_error_every_timer_and_every_record_is_reached() -> None:
    answers: dict[str, set[Error]] = {}
    timers: set[str] = set()
    records: set[type] = set()
    for name in SCOPES:
        reached = explored(name).reached
        timers |= reached.timers
        records |= reached.records
        for api, error in reached.answers:
            answers.setdefault(api, set()).add(error)
    assert answers == ERRORS
    assert timers == {HEARTBEAT, EXPIRY, INITIAL_JOIN, JOIN, SYNC}
    assert records == {*ClassicGroup.records, GroupCreated, GroupDeleted, MemberRemoved, StaticMemberReplaced}


# ---- progress -------------------------------------------------------------------------------------------------


@by_scope()
def test_every_group_is_deleted_if_there_are_no_more_requests(name: str) -> None:
    """From every state, time leads to the end of all sessions, an Empty group and its deletion."""
    search = explored(name)
    ending = {0}
    for state in range(len(search.concrete_states)):
        reached, passed = state, []
        while reached not in ending:
            assert reached not in passed, f"the group is never deleted: {' > '.join(search.path_to(state))}"
            passed.append(reached)
            reached = search.edges[reached][TICK]
        ending |= set(passed)


@by_scope(*(name for name in IN_TIME if name in SCOPES))
def test_a_group_of_correct_members_becomes_stable_without_losing_a_member(name: str) -> None:
    search = explored(name)
    for state, initial in enumerate(search.concrete_states):
        start = initial.decoded()
        if start is None or not classic(start).members:
            continue
        reached, group = state, start
        for _ in range(20):
            if group.state is State.STABLE:
                break
            reached = search.edges[reached][_next_correct_move(group)]
            after = search.concrete_states[reached].decoded()
            assert after is not None
            group = after
        path = " > ".join(search.path_to(state))
        assert group.state is State.STABLE, f"stuck: {path}"
        assert len(classic(group).members) == len(classic(start).members), f"lost: {path}"


def _next_correct_move(group: Group) -> str:
    """Return the next move of correct members: a rejoin or the leader's sync; if all members wait, time passes."""
    for i, member in enumerate(classic(group).members.values()):
        if group.state is State.PREPARING_REBALANCE and member.parked_join is None:
            return f"member {i} rejoins, list {list_of(member)}"
        if group.state is State.COMPLETING_REBALANCE and member.member_id == classic(group).leader:
            return f"member {i} syncs"
    return TICK


@by_scope()
def test_a_duplicate_request_leads_to_the_same_state(name: str) -> None:
    """Send syncs, heartbeats and commits twice.

    Of two parked requests, the second one is answered, which does not distinguish states. Rejoins are not idempotent:
    each one of a leader starts a rebalance.
    """
    search = explored(name)
    for state, edges in enumerate(search.edges):
        for move, arrived in edges.items():
            if any(word in move for word in (" syncs", " heartbeats", " commits")):
                assert search.edges[arrived][move] == arrived, " > ".join([*search.path_to(state), move, move])
