"""Whatever clients do, the refusals that are told are those that the group has answered."""

from hypothesis import event, given
from hypothesis import strategies as st

from coordinator_logic.errors import Error
from coordinator_logic.records import RequestCause
from streaming.explain.refusals.judging import JUDGED, ORDINARY
from streaming.explain.replay.world import refusal
from tests.explain.refusals.judged import judge_of
from tests.explain.story.test_agreement import STEPS, Members, Step
from tests.logic.driver import Driven
from tests.logic.groups.consumer.driver import DrivenConsumers
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


def found(driven: Driven, skip: int = 0, first_request: int = 0) -> dict[int, Error]:
    """The errors of the requests that are told as refused."""
    verdicts = judge_of(driven, skip, first_request).finish()
    return {one.request.place.offset: one.error for one in verdicts}


def without(errors: dict[int, Error], offsets: set[int]) -> dict[int, Error]:
    """The errors without those of some requests."""
    return {offset: error for offset, error in errors.items() if offset not in offsets}


def before_the_journal(driven: Driven) -> set[int]:
    """The requests before the group's first entry, of which nothing is told."""
    causes = [one.cause for one in driven.journal]
    first = next((cause.offset for cause in causes if isinstance(cause, RequestCause)), len(driven.log))
    return set(range(first))


@given(STORIES, st.floats(0, 1), st.floats(0, 1))
@SOME
def test_refusals_of_a_classic_group_are_those_that_it_answered(
    moves: list[Move], journal_from: float, requests_from: float
) -> None:
    driven, parked = Driven(), set[int]()
    clients = Clients(driven)
    for move in moves:
        clients.play(move)
        parked |= {one.place.offset for one in driven.log if driven.answer_to(one).parked}
    # A request that was parked is refused later, by what happens to its member.
    expected = without(answered(driven), parked)
    assert without(found(driven), parked) == without(expected, before_the_journal(driven))
    assert judge_of(driven).unexplained == 0
    for error in set(expected.values()):
        event(error.name)
    skip, first = int(journal_from * len(driven.journal)), int(requests_from * len(driven.log))
    assert without(found(driven, skip, first), parked).items() <= expected.items()


@given(STEPS)
@SOME
def test_refusals_of_a_consumer_group_are_those_that_it_answered(steps: list[Step]) -> None:
    driven = DrivenConsumers()
    members = Members(driven)
    for step in steps:
        members.play(step)
    assert found(driven) == without(answered(driven), before_the_journal(driven))
