"""Groups that only a defect can produce: the logic raises, or refuses, instead of using them.

The operator turns what is raised into UNKNOWN_SERVER_ERROR and keeps the group (``tests/job/test_operator.py``).
"""

import pytest

from coordinator_logic import snapshot
from coordinator_logic.errors import Error
from coordinator_logic.groups.classic.records import MemberAdded
from coordinator_logic.records import apply
from coordinator_logic.states import IllegalState, State
from tests.logic.driver import Driven
from tests.support.parts import classic


def corrupt(driven: Driven, state: State) -> None:
    """Put the stored group into another state by hand."""
    group = driven.group
    group.part.state = state
    driven.snapshot = snapshot.encode(group)
    driven.journal.clear()


def test_a_static_member_that_returns_to_an_empty_group_raises(driven: Driven) -> None:
    driven.stable_group(2, static=1)
    corrupt(driven, State.EMPTY)
    with pytest.raises(IllegalState, match="group 'the-group' is Empty and has the static member 'instance-0'"):
        driven.join(instance="instance-0")


def test_a_group_put_into_dead_by_hand_refuses_its_members_and_keeps_them(driven: Driven) -> None:
    leader, follower = driven.stable_group(2, static=1)
    corrupt(driven, State.DEAD)
    stored = driven.snapshot
    assert driven.heartbeat(follower).error is Error.COORDINATOR_NOT_AVAILABLE
    assert driven.join(instance="instance-0").error is Error.COORDINATOR_NOT_AVAILABLE
    assert driven.leave(leader).error is Error.COORDINATOR_NOT_AVAILABLE
    driven.sleep(1_000_000)
    assert driven.snapshot == stored


def test_a_handed_out_id_that_is_a_member_raises(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    group = driven.group
    classic(group).pending_joins[member.member_id] = None
    driven.snapshot = snapshot.encode(group)
    with pytest.raises(IllegalState, match=f"already has a member '{member.member_id}'"):
        driven.join(member.member_id)


def test_a_member_cannot_be_added_twice(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    added = next(record for record in driven.records if isinstance(record, MemberAdded))
    group = driven.group
    with pytest.raises(IllegalState, match=member.member_id):
        apply(group, added, 0)
    assert group == driven.group
