"""Due times: never early, late by a small part of the time until then, and few."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.job.due_times import FINEST_MS, STEPS, due_time
from streaming.job.group_batch.processing import MAX_WAIT_MS
from streaming.job.operator import timeout_of

NOW = 1_700_000_000_003
WAITS = st.integers(1, 60_000) | st.integers(1, MAX_WAIT_MS)


@given(WAITS)
def test_a_due_time_is_after_the_timeout_and_late_by_a_small_part_of_the_wait(wait: int) -> None:
    timeout = NOW + wait
    late = due_time(timeout, NOW) - (timeout + 1)
    assert 0 <= late < max(FINEST_MS, (wait + 1) / STEPS)


@given(st.integers(-10_000, 0))
def test_a_group_that_asks_for_the_next_batch_is_due_at_once(wait: int) -> None:
    timeout = timeout_of(NOW + wait, NOW)
    assert timeout == NOW + 1
    assert due_time(timeout, NOW) - NOW <= FINEST_MS + 2


def test_all_due_times_of_a_year_are_a_few_thousand() -> None:
    waits = [1]
    while waits[-1] < MAX_WAIT_MS:
        # Closer together than the grid is.
        waits.append(waits[-1] + max(5, waits[-1] // (4 * STEPS)))
    assert len({due_time(NOW + wait, NOW) for wait in waits}) < 7_000


def test_timeouts_of_requests_of_the_same_moment_share_a_due_time() -> None:
    session = 45_000
    assert len({due_time(NOW + session + appended, NOW) for appended in range(450)}) <= 4
