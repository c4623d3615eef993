"""When a run of Kafka's tests counts as good."""

import pytest

from tests.kafka_tests.__main__ import judge
from tests.kafka_tests.exceptions import CANNOT_RUN, MAY_FAIL
from tests.kafka_tests.play import Outcome, Result

LISTED = next(iter(CANNOT_RUN))


def result(test: str, outcome: Outcome, profile: str = "requests") -> Result:
    return Result(profile, test, outcome, 1.0, "")


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        (["passed"], []),
        (["aborted", "passed"], []),
        (["failed"], ["fails: T#t"]),
        (["failed", "passed"], ["fails: T#t"]),
        (["aborted", "aborted"], ["runs in no profile: T#t"]),
    ],
)
def test_a_test_must_pass_in_a_profile_and_fail_in_none(outcomes: list[Outcome], verdict: list[str]) -> None:
    assert judge([result("T#t", each) for each in outcomes], in_all_profiles=True) == verdict


def test_a_test_that_some_profiles_abort_may_run_in_another() -> None:
    assert judge([result("T#t", "aborted")], in_all_profiles=False) == []


@pytest.mark.parametrize("outcome", ["failed", "aborted"])
def test_a_listed_test_may_fail(outcome: Outcome) -> None:
    assert judge([result(LISTED, outcome)], in_all_profiles=True) == []


def test_a_listed_test_must_not_pass() -> None:
    assert judge([result(LISTED, "passed")], in_all_profiles=False) == [f"passes, but is listed: {LISTED}"]


@pytest.mark.parametrize("outcome", ["failed", "passed"])
def test_a_test_that_needs_quick_answers_may_fail(outcome: Outcome) -> None:
    assert judge([result(next(iter(MAY_FAIL)), outcome)], in_all_profiles=True) == []
