"""Commits, and the positions at which consumers start."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from coordinator_logic.errors import Error
from streaming.client import (
    CommitFailed,
    CoordinatorError,
    NoOffsetForPartition,
    OffsetAndMetadata,
    TopicPartition,
)
from tests.client.consumer.support import (
    PARTITIONS,
    NewConsumer,
    poll_until,
    poll_until_assigned,
    positions_of,
    remove_member,
)
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.waiting import wait_until


def test_the_next_member_starts_at_the_committed_offsets(
    new: NewConsumer, topic: str, fill: Callable[..., None]
) -> None:
    fill(10)
    consumer = new()
    consumer.subscribe([topic])
    poll_until(consumer, 10 * PARTITIONS)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert consumer.committed([first, second]) == {first: None, second: None}
    consumer.commit()
    assert consumer.committed([first])[first] == OffsetAndMetadata(10, "", 0)
    consumer.commit({second: OffsetAndMetadata(4, "checkpoint 7")})
    assert consumer.committed([second])[second] == OffsetAndMetadata(4, "checkpoint 7", -1)
    consumer.close()
    successor = new()
    successor.subscribe([topic])
    assert positions_of(poll_until(successor, 6)) == [(1, offset) for offset in range(4, 10)]
    assert successor.position(first) == 10


def test_callbacks_of_asynchronous_commits_come_in_order(
    new: NewConsumer, topic: str, fill: Callable[..., None]
) -> None:
    consumer = new()
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    partition = TopicPartition(topic, 0)
    results: list[tuple[int, CoordinatorError | None]] = []
    main = threading.current_thread()
    for offset in range(1, 6):

        def callback(offsets: Any, failure: CoordinatorError | None) -> None:
            assert threading.current_thread() is main
            results.append((offsets[partition].offset, failure))

        consumer.commit_async(callback, {partition: offset})
    assert results == []
    wait_until(lambda: consumer.poll(0.05) == [] and len(results) == 5, "all callbacks are called")
    assert results == [(offset, None) for offset in range(1, 6)]
    committed = consumer.committed([partition])[partition]
    assert committed is not None
    assert committed.offset == 5


def test_too_large_metadata_fails_the_commit_of_its_partition(new: NewConsumer, topic: str) -> None:
    consumer = new()
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    with pytest.raises(CoordinatorError, match=f"{topic}-3") as raised:
        consumer.commit({TopicPartition(topic, 3): OffsetAndMetadata(1, "x" * 5_000)})
    assert raised.value.error is Error.OFFSET_METADATA_TOO_LARGE


def test_a_removed_consumer_cannot_commit(
    coordinator: CoordinatorProcess, new: NewConsumer, topic: str, group_id: str
) -> None:
    # Heartbeats are rare, so that the commit is answered before any of them.
    consumer = new(session_timeout_ms=60_000, heartbeat_interval_ms=50_000)
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    remove_member(coordinator, group_id, consumer.generation.member_id)
    with pytest.raises(CommitFailed, match="UNKNOWN_MEMBER_ID"):
        consumer.commit({TopicPartition(topic, 0): 1})
    with pytest.raises(CommitFailed):
        consumer.commit({TopicPartition(topic, 0): 1})


def test_close_commits_with_auto_commit(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(10)
    consumer = new(enable_auto_commit=True, auto_commit_interval_ms=600_000)
    consumer.subscribe([topic])
    poll_until(consumer, 10 * PARTITIONS)
    consumer.close()
    committed = new().committed([TopicPartition(topic, p) for p in range(PARTITIONS)])
    assert {offset.offset for offset in committed.values() if offset is not None} == {10}
    assert None not in committed.values()


def test_auto_commit_commits_at_its_interval(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(10)
    consumer = new(enable_auto_commit=True, auto_commit_interval_ms=100)
    consumer.subscribe([topic])
    poll_until(consumer, 10 * PARTITIONS)
    partition = TopicPartition(topic, 5)

    def committed() -> bool:
        consumer.poll(0.1)
        offset = consumer.committed([partition])[partition]
        return offset is not None and offset.offset == 10

    wait_until(committed, "the position is committed")


def test_without_auto_commit_nothing_is_committed(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(1)
    consumer = new()
    consumer.subscribe([topic])
    poll_until(consumer, PARTITIONS)
    consumer.close()
    assert set(new().committed([TopicPartition(topic, p) for p in range(PARTITIONS)]).values()) == {None}


def test_latest_starts_with_the_records_after_the_assignment(
    new: NewConsumer, topic: str, fill: Callable[..., None]
) -> None:
    fill(10)
    consumer = new(auto_offset_reset="latest")
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    assert [consumer.position(partition) for partition in consumer.assignment] == [10] * PARTITIONS
    fill(1)
    assert sorted(positions_of(poll_until(consumer, PARTITIONS))) == [(p, 10) for p in range(PARTITIONS)]


def test_the_position_of_latest_can_be_committed_before_any_record(
    new: NewConsumer, topic: str, fill: Callable[..., None]
) -> None:
    fill(10)
    consumer = new(auto_offset_reset="latest")
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    assert consumer.position(TopicPartition(topic, 0)) == 10
    consumer.commit()
    consumer.close()
    fill(1)
    successor = new(auto_offset_reset="latest")
    successor.subscribe([topic])
    assert sorted(positions_of(poll_until(successor, PARTITIONS))) == [(p, 10) for p in range(PARTITIONS)]


def test_without_a_reset_policy_a_partition_without_an_offset_raises(new: NewConsumer, topic: str) -> None:
    consumer = new(auto_offset_reset="none")
    consumer.subscribe([topic])
    with pytest.raises(NoOffsetForPartition, match=f"no committed offset for {topic}-0"):
        wait_until(lambda: consumer.poll(0.2), "poll raises")


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 0), ("none", None)])
def test_an_offset_outside_the_log_is_reset(
    new: NewConsumer, topic: str, fill: Callable[..., None], reset: str, expected: int | None
) -> None:
    fill(3, [0])
    committer = new()
    committer.subscribe([topic])
    poll_until(committer, 3)
    committer.commit()
    committer.commit({TopicPartition(topic, 0): 1_000})
    committer.close()
    consumer = new(auto_offset_reset=reset)
    consumer.subscribe([topic])
    if expected is None:
        with pytest.raises(NoOffsetForPartition):
            wait_until(lambda: consumer.poll(0.2), "poll raises")
    else:
        assert positions_of(poll_until(consumer, 3)) == [(0, 0), (0, 1), (0, 2)]
