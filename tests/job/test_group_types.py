"""What differs in the job by a group's type: nothing of a type is missing."""

from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from coordinator_logic.states import State
from streaming.job.group_types import GROUP_TYPES


def test_every_type_is_known() -> None:
    assert set(GROUP_TYPES) == {CLASSIC_TYPE, CONSUMER_TYPE}


def test_every_state_of_a_group_that_exists_is_one_of_a_type() -> None:
    states = {state for kind in GROUP_TYPES.values() for state in kind.states}
    assert states == set(State) - {State.DEAD}


def test_a_group_rebalances_in_states_that_it_can_have() -> None:
    for kind in GROUP_TYPES.values():
        assert set(kind.rebalances) <= set(kind.states)
