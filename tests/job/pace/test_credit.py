"""The budget of CPU time of the batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.job.pace.credit import BURST_SECONDS, DEBT_SECONDS, FIRST_SECONDS, Credit

CORES = 0.5


USED = FIRST_SECONDS * CORES


def rested() -> Credit:
    """The credit, at 2,000 s, of a job that has used at its start what it had then, and nothing since."""
    credit = Credit(CORES, 0.0, 0.0)
    credit.note(0.0, USED)
    credit.note(2_000.0, USED)
    return credit


def test_batches_follow_each_other_while_there_is_credit() -> None:
    credit = rested()
    credit.note(2_001.0, USED + 1.0)
    assert credit.free_at() == 2_001.0


def test_a_job_that_rests_saves_a_burst_and_no_more() -> None:
    credit = rested()
    credit.note(2_000.0, USED + BURST_SECONDS * CORES)
    assert credit.free_at() == 2_000.0
    credit.note(2_000.0, USED + BURST_SECONDS * CORES + 0.1)
    assert credit.free_at() > 2_000.0


def test_what_is_owed_is_paid_back_at_the_rate_of_the_budget() -> None:
    credit = rested()
    credit.note(2_000.0, USED + BURST_SECONDS * CORES + 0.1)
    assert credit.free_at() == pytest.approx(2_000.0 + 0.1 / CORES)


def test_a_job_that_has_just_started_may_use_more() -> None:
    credit = Credit(CORES, 0.0, 0.0)
    credit.note(1.0, FIRST_SECONDS * CORES)
    assert credit.free_at() == 1.0


def test_without_a_budget_nothing_is_ever_free() -> None:
    credit = Credit(0.0, 0.0, 0.0)
    credit.note(1.0, 0.1)
    assert credit.free_at() == float("inf")


def test_a_load_beyond_the_budget_is_not_held_against_the_job_for_long() -> None:
    credit = rested()
    credit.note(2_060.0, USED + 100.0)
    assert credit.free_at() == 2_060.0 + DEBT_SECONDS


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, CORES * DEBT_SECONDS)), min_size=1))
def test_batches_that_wait_for_credit_use_no_more_than_the_budget_and_what_was_saved(
    steps: list[tuple[float, float]],
) -> None:
    credit = Credit(CORES, 0.0, 0.0)
    seconds = used = 0.0
    for passed, spent in steps:
        seconds = max(seconds + passed, credit.free_at())
        used += spent
        credit.note(seconds, used)
        before_the_last = used - spent
        assert before_the_last <= CORES * (seconds + FIRST_SECONDS) + 1e-6 * (1 + used)
