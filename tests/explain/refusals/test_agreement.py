"""Whatever clients do, the refusals that are told are those that the group has answered."""

from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from coordinator_logic.errors import Error
from streaming.explain.refusals.judging import JUDGED, ORDINARY
from streaming.explain.replay.world import refusal
from tests.explain.refusals.judged import judge_of, verdicts_of
from tests.explain.story.test_agreement import STEPS, Members, Step
from tests.logic.consumer_group.driver import DrivenConsumers
from tests.logic.driver import Driven
from tests.logic.strategies import STORIES, Move
from tests.logic.strategies import Story as Clients
from tests.support.properties import examples

SOME = examples(60)

OF_OFFSETS = frozenset({Error.INVALID_UPDATE_VERSION, Error.UNSTABLE_OFFSET_COMMIT})
"""The errors of a reset that depend on offsets, which the journal is read without."""


def answered(driven: Driven) -> dict[int, Error]:
    """The errors of the requests that were refused at once, by their offset in the log."""
    errors = {}
    for request in driven.log:
        response = driven.answer_to(request).response
        error = Error.NONE if response is None else Error(refusal(response))
        if request.address.api in JUDGED and error not in (*ORDINARY, *OF_OFFSETS):
            errors[request.place.offset] = error
    return errors


def check(driven: Driven, parked: set[int]) -> None:
    """Compare with the answers; a request that was parked may have been refused later."""
    found = {one.request.place.offset: one.error for one in verdicts_of(driven)}
    expected = {offset: error for offset, error in answered(driven).items() if offset not in parked}
    assert {offset: error for offset, error in found.items() if offset not in parked} == expected
    assert judge_of(driven).unexplained == 0
    for error in set(expected.values()):
        event(error.name)


def parked_now(driven: Driven) -> set[int]:
    """The requests that wait for their answer."""
    return {one.place.offset for one in driven.log if driven.answer_to(one).parked}


@given(STORIES)
@SOME
def test_refusals_of_a_classic_group_are_those_that_it_answered(moves: list[Move]) -> None:
    driven, parked = Driven(), set[int]()
    clients = Clients(driven)
    for move in moves:
        clients.play(move)
        parked |= parked_now(driven)
    check(driven, parked)


@given(STEPS)
@SOME
def test_refusals_of_a_consumer_group_are_those_that_it_answered(steps: list[Step]) -> None:
    driven = DrivenConsumers()
    members = Members(driven)
    for step in steps:
        members.play(step)
    check(driven, set())


@given(STORIES, st.floats(0, 1), st.floats(0, 1))
@SOME
def test_a_part_of_the_requests_or_of_the_journal_tells_nothing_that_was_not_refused(
    moves: list[Move], journal_from: float, requests_from: float
) -> None:
    driven, parked = Driven(), set[int]()
    clients = Clients(driven)
    for move in moves:
        clients.play(move)
        parked |= parked_now(driven)
    skip, first = int(journal_from * len(driven.journal)), int(requests_from * len(driven.log))
    found = {one.request.place.offset: one.error for one in judge_of(driven, skip, first).finish()}
    expected: dict[int, Any] = answered(driven)
    assert {offset: error for offset, error in found.items() if offset not in parked}.items() <= expected.items()
