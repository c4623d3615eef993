"""Replaying a case as it was, and with other settings."""

import msgspec
import pytest

from coordinator_logic.states import State
from streaming.explain.replay.case import anonymised
from streaming.explain.replay.what_if import Changes, lived, what_if
from tests.explain.replay.recorded import CONFIG, START, restarted_client
from tests.support.parts import classic

CASE = restarted_client()


def test_a_replay_makes_the_decisions_that_the_group_made() -> None:
    world = lived(CASE)
    assert world.decisions[0].text == "group created"
    assert world.figures.rebalances == world.figures.generations == 3
    assert world.figures.members_added == 3
    assert world.figures.members_expelled == 0
    assert world.group is not None
    assert world.group.state is State.STABLE


def test_a_what_if_without_changes_goes_as_it_was() -> None:
    as_it_was, unchanged = lived(CASE).figures, what_if(CASE, Changes(CONFIG)).figures
    assert unchanged.rebalances == as_it_was.rebalances
    assert unchanged.members_added == as_it_was.members_added
    assert unchanged.members_expelled == as_it_was.members_expelled == 0


def test_static_members_restart_without_a_rebalance() -> None:
    world = what_if(CASE, Changes(CONFIG, static=True))
    assert world.figures.rebalances == 1
    assert world.group is not None
    assert world.group.state is State.STABLE
    assert len(classic(world.group).members) == 2


def test_a_longer_initial_delay_keeps_the_group_out_of_stable_for_longer() -> None:
    config = msgspec.structs.replace(CONFIG, group_initial_rebalance_delay_ms=10_000)
    assert what_if(CASE, Changes(config)).figures.not_stable_ms > lived(CASE).figures.not_stable_ms


def test_what_came_before_since_is_neither_shown_nor_counted() -> None:
    since = START + 10_000
    world = lived(msgspec.structs.replace(CASE, since=since))
    assert world.figures.rebalances == 2
    assert all(decision.time >= since for decision in world.decisions)


def test_an_anonymised_case_replays_alike_and_holds_no_name() -> None:
    hidden = anonymised(CASE)
    assert lived(hidden).figures == lived(CASE).figures
    assert what_if(hidden, Changes(CONFIG, static=True)).figures == what_if(CASE, Changes(CONFIG, static=True)).figures
    text = b"".join(bytes(request.value) for request in hidden.requests)
    assert b"worker" not in text


@pytest.mark.parametrize("session_ms", [1_000, 60_000])
def test_the_session_timeout_of_a_what_if_is_the_one_given(session_ms: int) -> None:
    config = msgspec.structs.replace(CONFIG, group_min_session_timeout_ms=1)
    figures = what_if(CASE, Changes(config, session_ms=session_ms)).figures
    assert (figures.members_expelled > 0) == (session_ms < 2_000)


def test_a_rebalance_in_the_timeline_has_the_cause_that_its_story_tells() -> None:
    began = [one.text.partition(" -> PreparingRebalance: ")[2] for one in lived(CASE).decisions]
    joined, left, returned = [text for text in began if text]
    assert joined.endswith(": joined")
    assert left.startswith("perhaps: member left or poll interval exceeded; ")
    assert returned.endswith(": joined")
    assert not [text for text in began if text.startswith("member ")]
