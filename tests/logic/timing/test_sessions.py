"""Late answers: when an answer to a JoinGroup is late, and from when sessions count then."""

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.states import State
from coordinator_logic.timing.sessions import late_answer_ms
from tests.logic.driver import SESSION_MS, Driven
from tests.support.parts import classic

LATE_MS = 2_000


@pytest.fixture
def driven() -> Driven:
    """A group whose coordinator has a bound for late answers."""
    return Driven(group_initial_rebalance_delay_ms=0, late_answer_ms=LATE_MS)


@pytest.mark.parametrize(
    ("interval_ms", "late_ms"), [(0, 2_000), (450, 2_000), (1_000, 2_000), (2_000, 3_000), (10_000, 11_000)]
)
def test_the_bound_is_beyond_the_trigger_interval(interval_ms: int, late_ms: int) -> None:
    assert late_answer_ms(interval_ms) == late_ms


def test_a_group_that_answered_a_join_is_called_in_the_next_batch(driven: Driven) -> None:
    driven.join(version=3)
    assert driven.wake_at == driven.now
    driven.sleep(100)
    assert driven.wake_at == 1_000_000 + SESSION_MS


def test_a_group_that_handed_out_a_member_id_is_called_in_the_next_batch(driven: Driven) -> None:
    assert driven.join().error is Error.MEMBER_ID_REQUIRED
    assert driven.wake_at == driven.now


def test_a_refused_join_is_no_reason_to_be_called(driven: Driven) -> None:
    driven.join("unknown-id")
    assert not driven.exists
    driven.join(version=3)
    driven.sleep(1)
    driven.join("unknown-id")
    assert driven.wake_at == 1_000_000 + SESSION_MS


def test_an_answer_that_takes_exactly_the_bound_is_not_late(driven: Driven) -> None:
    driven.join(version=3)
    driven.sleep(LATE_MS)
    driven.sleep(SESSION_MS - LATE_MS)
    assert driven.state() is State.EMPTY


def test_after_a_late_answer_every_session_counts_from_the_batch_that_found_it_late(driven: Driven) -> None:
    driven.join(version=3)
    driven.sleep(LATE_MS + 1)
    assert driven.wake_at == driven.now + SESSION_MS
    driven.sleep(SESSION_MS - 1)
    assert len(classic(driven.group).members) == 1
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_only_the_batch_after_the_answer_can_be_late(driven: Driven) -> None:
    driven.join(version=3)
    driven.sleep(100)
    driven.sleep(LATE_MS + 1)
    assert driven.wake_at == 1_000_000 + SESSION_MS


def test_a_batch_that_handles_requests_can_be_late_too(driven: Driven) -> None:
    driven.join(version=3)
    driven.now += 100 * SESSION_MS
    assert driven.commit().error is Error.UNKNOWN_MEMBER_ID
    assert len(classic(driven.group).members) == 1, "its session did not end before the request"


def test_without_a_bound_no_answer_is_late() -> None:
    driven = Driven(group_initial_rebalance_delay_ms=0)
    driven.join(version=3)
    assert driven.wake_at == driven.now + SESSION_MS
    driven.sleep(SESSION_MS)
    assert driven.state() is State.EMPTY
