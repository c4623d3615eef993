"""Every state of small consumer groups: each is safe, and each converges once its clients follow the protocol."""

from functools import cache

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.group.timer import HEARTBEAT
from coordinator_logic.groups.consumer.members import MemberState
from coordinator_logic.groups.consumer.timers import MEMBER_JOIN, MEMBER_SYNC, REVOCATION
from coordinator_logic.states import State
from tests.logic.exhaustive.consumers.scopes import LARGE_SCOPES, SCOPES, WIDE_SCOPES
from tests.logic.exhaustive.consumers.search import Search
from tests.logic.exhaustive.extent import covered

DEFAULT_SCOPES = {name: scope for name, scope in SCOPES.items() if name not in WIDE_SCOPES}
ALL = covered(DEFAULT_SCOPES, WIDE_SCOPES, LARGE_SCOPES)


@cache
def explored(name: str) -> Search:
    """Search a scope; each is searched once."""
    return Search(ALL[name]).run()


@pytest.mark.parametrize("name", ALL)
def test_every_state_is_safe_and_converges(name: str) -> None:
    search = explored(name)
    assert len(search.edges) == len(search.worlds)


@pytest.mark.parametrize("name", [name for name in ALL if len(ALL[name].instances) > 1])
def test_members_and_groups_reach_every_state(name: str) -> None:
    reached = explored(name).reached
    assert reached.members == set(MemberState)
    assert reached.groups == {State.EMPTY, State.ASSIGNING, State.RECONCILING, State.STABLE}


def test_a_member_alone_never_waits_for_others() -> None:
    reached = explored("one that loses responses").reached
    assert reached.members == {MemberState.STABLE}


def test_each_timer_fires_and_each_check_of_a_member_refuses_something() -> None:
    answers = {error for name in ALL for error in explored(name).reached.answers}
    timers = {timer for name in ALL for timer in explored(name).reached.timers}
    assert timers == {HEARTBEAT, REVOCATION, MEMBER_JOIN, MEMBER_SYNC}
    assert answers == {
        Error.NONE,
        Error.GROUP_ID_NOT_FOUND,
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.STALE_MEMBER_EPOCH,
        Error.FENCED_INSTANCE_ID,
        Error.UNRELEASED_INSTANCE_ID,
        Error.ILLEGAL_GENERATION,
        Error.REBALANCE_IN_PROGRESS,
        Error.OFFSET_METADATA_TOO_LARGE,
    }
