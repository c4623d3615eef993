from itertools import product

import pytest

from coordinator_logic.group import Group
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.groups.classic.transitions import TRANSITIONS, check_transition
from coordinator_logic.records import apply
from coordinator_logic.states import IllegalTransition, State
from docs.state_diagram import mermaid

LEGAL_SOURCES = {
    State.EMPTY: {State.PREPARING_REBALANCE},
    State.PREPARING_REBALANCE: {State.STABLE, State.COMPLETING_REBALANCE, State.EMPTY},
    State.COMPLETING_REBALANCE: {State.PREPARING_REBALANCE},
    State.STABLE: {State.COMPLETING_REBALANCE},
    State.DEAD: set(TRANSITIONS),
}


@pytest.mark.parametrize(("current", "target"), list(product(TRANSITIONS, TRANSITIONS)))
def test_the_table_has_exactly_kafkas_transitions(current: State, target: State) -> None:
    if current in LEGAL_SOURCES[target]:
        check_transition("g", current, target)
    else:
        with pytest.raises(IllegalTransition, match=f"'g' cannot go from {current.value} to {target.value}"):
            check_transition("g", current, target)


@pytest.mark.parametrize(
    ("state", "can"),
    [
        (State.STABLE, True),
        (State.COMPLETING_REBALANCE, True),
        (State.EMPTY, True),
        (State.PREPARING_REBALANCE, False),
        (State.DEAD, False),
    ],
)
def test_a_rebalance_can_begin_unless_one_is_in_progress(state: State, can: bool) -> None:
    assert ClassicGroup(state).can_rebalance is can


def test_a_transition_keeps_the_previous_state_and_the_time() -> None:
    group = Group("g", "0-0")
    assert (group.state, group.part.previous_state) == (State.EMPTY, State.DEAD)
    apply(group, StateChanged("Empty", "PreparingRebalance", "a member joins"), 1234)
    assert (group.state, group.part.previous_state) == (State.PREPARING_REBALANCE, State.EMPTY)
    assert group.part.state_timestamp == 1234


def test_an_illegal_transition_changes_nothing() -> None:
    group = Group("g", "0-0")
    with pytest.raises(IllegalTransition):
        apply(group, StateChanged("Empty", "Stable", "no"), 1234)
    assert group == Group("g", "0-0")


def test_the_diagram_has_every_state_and_every_transition() -> None:
    lines = [line.strip() for line in mermaid().splitlines()]
    assert lines[0] == "stateDiagram-v2"
    drawn = {tuple(line.split(":")[0].split(" --> ")) for line in lines if ":" in line}
    legal = {(source.value, target.value) for target, sources in LEGAL_SOURCES.items() for source in sources}
    assert drawn == legal
