"""Seeking, pausing, and the calls and settings that a consumer refuses."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from streaming.client import TopicPartition
from tests.client.consumer.support import (
    COOPERATIVE,
    PARTITIONS,
    App,
    NewConsumer,
    RecordingListener,
    poll_until,
    poll_until_assigned,
    positions_of,
)
from tests.support.background_loop import BackgroundLoop
from tests.support.topics import unique
from tests.support.waiting import wait_until


def test_seek_changes_the_next_records(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(10, [0])
    consumer = new()
    consumer.subscribe([topic])
    poll_until(consumer, 10)
    partition = TopicPartition(topic, 0)
    consumer.seek(partition, 7)
    assert consumer.position(partition) == 7
    assert positions_of(poll_until(consumer, 3)) == [(0, 7), (0, 8), (0, 9)]
    consumer.seek_to_beginning([partition])
    assert positions_of(poll_until(consumer, 10))[0] == (0, 0)
    consumer.seek_to_end([partition])
    fill(1, [0])
    assert positions_of(poll_until(consumer, 1)) == [(0, 10)]
    with pytest.raises(ValueError, match="is not assigned"):
        consumer.seek(TopicPartition("another", 0), 0)


def test_seek_drops_records_that_were_fetched_ahead(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(100, [0])
    consumer = new(max_poll_records=5)
    consumer.subscribe([topic])
    poll_until(consumer, 5)
    consumer.seek(TopicPartition(topic, 0), 50)
    assert positions_of(poll_until(consumer, 5))[0] == (0, 50)


def test_a_paused_partition_returns_no_records_until_it_is_resumed(
    new: NewConsumer, topic: str, fill: Callable[..., None]
) -> None:
    fill(10, [0])
    consumer = new(max_poll_records=3)
    consumer.subscribe([topic])
    seen = poll_until(consumer, 3)
    partition = TopicPartition(topic, 0)
    consumer.pause([partition])
    assert consumer.paused == [partition]
    fill(4, [1])
    assert {record.partition for record in poll_until(consumer, 4)} == {1}
    consumer.seek(partition, seen[-1].offset + 1)
    fill(4, [2])
    assert {record.partition for record in poll_until(consumer, 4)} == {2}, "a seek does not resume"
    consumer.resume([partition])
    assert positions_of(seen + poll_until(consumer, 10 - len(seen))) == [(0, offset) for offset in range(10)]


def test_a_pause_ends_with_the_assignment(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    consumer = new()
    listener = RecordingListener()
    consumer.subscribe([topic], listener)
    poll_until_assigned(consumer)
    consumer.pause(consumer.assignment)
    fill(1)
    consumer.unsubscribe()
    consumer.subscribe([topic], listener)
    assert sorted(positions_of(poll_until(consumer, PARTITIONS))) == [(p, 0) for p in range(PARTITIONS)]


def test_a_pause_survives_a_cooperative_rebalance(
    new: NewConsumer, run: Callable[..., App], topic: str, fill: Callable[..., None]
) -> None:
    consumer = new(partition_assignment_strategy=COOPERATIVE)
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    paused = consumer.assignment
    consumer.pause(paused)
    other = run(new(partition_assignment_strategy=COOPERATIVE))
    wait_until(lambda: not consumer.poll(0.1) and len(other.owned) == 3, "they share the partitions")
    assert consumer.paused == consumer.assignment
    assert len(consumer.paused) == 3


# ------------------------------------------------------------------------------------------------------------------
# Use


def test_a_call_from_another_thread_is_refused(new: NewConsumer, topic: str) -> None:
    consumer = new()
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    polling = BackgroundLoop(lambda: consumer.poll(0.5))
    try:

        def refused() -> bool:
            if polling.failure is not None:
                return True  # the other thread's call was the second one
            try:
                consumer.commit()
            except RuntimeError as failure:
                return "not thread-safe" in str(failure)
            return False

        wait_until(refused, "a call from another thread is refused")
    finally:
        polling.end()
    assert polling.failure is None or "not thread-safe" in str(polling.failure)


def test_a_closed_consumer_refuses_calls_and_leaves_no_thread(new: NewConsumer, topic: str, group_id: str) -> None:
    client_id = unique("app")
    consumer = new(client_id=client_id)
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    consumer.close()
    consumer.close()
    with pytest.raises(RuntimeError, match="the consumer is closed"):
        consumer.poll(0)
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if client_id in name or group_id in name]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group_id": ""}, "group_id must not be empty"),
        ({"auto_offset_reset": "newest"}, "auto_offset_reset is 'newest'"),
        ({"max_poll_records": 0}, r"max_poll_records \(0\) must be positive"),
        ({"partition_assignment_strategy": ["rnage"]}, "no assignor is called 'rnage'"),
        ({"partition_assignment_strategy": []}, "must name an assignor"),
        ({"heartbeat_interval_ms": 90_000}, "must be positive and less than session_timeout_ms"),
    ],
)
def test_an_invalid_setting_is_named(new: NewConsumer, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        new(**settings)


def test_an_unknown_setting_is_named(new: NewConsumer) -> None:
    with pytest.raises(TypeError, match="fetch_min_bites"):
        new(fetch_min_bites=1)
