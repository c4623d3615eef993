"""When requests that have arrived start a batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.job.pace.collection import ENOUGH, Collection

INTERVAL_SECONDS = 0.45


@pytest.fixture
def busy() -> Collection:
    """What has arrived since a batch began at 5 s."""
    collection = Collection(INTERVAL_SECONDS)
    collection.add(4.9, can_wait=False)
    collection.take(5.0)
    return collection


def test_no_batch_begins_without_a_request(busy: Collection) -> None:
    assert (busy.due_at(), busy.latest(), busy.is_complete) == (None, None, False)


def test_a_request_that_somebody_waits_for_starts_a_batch_at_once(busy: Collection) -> None:
    busy.add(5.1, can_wait=False)
    assert busy.is_complete
    assert busy.due_at() == 5.1
    assert busy.latest() == 5.0 + INTERVAL_SECONDS


def test_heartbeats_are_collected_until_somebody_waits(busy: Collection) -> None:
    busy.add(5.1, can_wait=True)
    busy.add(5.2, can_wait=True)
    assert not busy.is_complete
    assert busy.due_at() == 5.0 + INTERVAL_SECONDS
    busy.add(5.3, can_wait=False)
    assert busy.is_complete


def test_a_heartbeat_after_a_pause_is_answered_at_once(busy: Collection) -> None:
    busy.add(8.0, can_wait=True)
    assert busy.due_at() == 8.0


def test_enough_heartbeats_start_a_batch(busy: Collection) -> None:
    for _ in range(ENOUGH):
        assert not busy.is_complete
        busy.add(5.1, can_wait=True)
    assert busy.is_complete


def test_a_batch_takes_all_of_them(busy: Collection) -> None:
    busy.add(5.1, can_wait=False)
    busy.take(5.2)
    assert busy.due_at() is None
    busy.add(5.3, can_wait=True)
    assert busy.due_at() == 5.2 + INTERVAL_SECONDS


def test_a_look_that_finds_nothing_delays_no_heartbeat(busy: Collection) -> None:
    busy.take(9.0)
    busy.add(9.1, can_wait=True)
    assert busy.due_at() == 9.1


@given(st.lists(st.tuples(st.floats(0, 10), st.booleans()), min_size=1))
def test_no_request_waits_longer_than_the_interval(arrivals: list[tuple[float, bool]]) -> None:
    arrivals.sort()
    collection = Collection(INTERVAL_SECONDS)
    collection.add(0.0, can_wait=True)
    collection.take(0.0)
    for seconds, can_wait in arrivals:
        collection.add(seconds, can_wait=can_wait)
    due_at, latest = collection.due_at(), collection.latest()
    assert due_at is not None
    assert latest is not None
    assert arrivals[0][0] <= due_at <= latest <= arrivals[0][0] + INTERVAL_SECONDS
