"""When requests that have arrived start a batch."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.job.pace.collection import ENOUGH, Collection

COLLECT_SECONDS = 0.45


def test_no_batch_begins_without_a_request() -> None:
    collection = Collection(COLLECT_SECONDS)
    assert (collection.due_at(), collection.latest(), collection.is_complete) == (None, None, False)


def test_a_request_that_somebody_waits_for_starts_a_batch_at_once() -> None:
    collection = Collection(COLLECT_SECONDS)
    collection.add(5.0, can_wait=False)
    assert collection.is_complete
    assert collection.due_at() == 5.0


def test_heartbeats_are_collected_until_somebody_waits() -> None:
    collection = Collection(COLLECT_SECONDS)
    collection.add(5.0, can_wait=True)
    collection.add(5.1, can_wait=True)
    assert not collection.is_complete
    assert collection.due_at() == 5.0 + COLLECT_SECONDS
    collection.add(5.2, can_wait=False)
    assert collection.is_complete


def test_enough_heartbeats_start_a_batch() -> None:
    collection = Collection(COLLECT_SECONDS)
    for _ in range(ENOUGH):
        assert not collection.is_complete
        collection.add(5.0, can_wait=True)
    assert collection.is_complete


def test_a_batch_takes_all_of_them() -> None:
    collection = Collection(COLLECT_SECONDS)
    collection.add(5.0, can_wait=False)
    collection.take()
    assert collection.due_at() is None
    collection.add(6.0, can_wait=True)
    assert collection.due_at() == 6.0 + COLLECT_SECONDS


@given(st.lists(st.tuples(st.floats(0, 10), st.booleans()), min_size=1))
def test_the_oldest_request_waits_no_longer_than_the_interval(arrivals: list[tuple[float, bool]]) -> None:
    arrivals.sort()
    collection = Collection(COLLECT_SECONDS)
    for seconds, can_wait in arrivals:
        collection.add(seconds, can_wait=can_wait)
    due_at, latest = collection.due_at(), collection.latest()
    assert due_at is not None
    assert latest == arrivals[0][0] + COLLECT_SECONDS
    assert arrivals[0][0] <= due_at <= latest
