"""Committed offsets expire after their retention time, and obsolete groups are deleted (KIP-211)."""

from typing import Any

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from coordinator_logic.records import EXPIRED, GroupDeleted, OffsetsDeleted, TimerCause, TopicPartitions
from coordinator_logic.states import State
from tests.logic.driver import (
    DELAY_MS,
    SESSION_MS,
    Driven,
    Joined,
    joined,
    listing,
    reading,
)

MINUTE_MS = 60_000
TICK_MS = 600_000


@pytest.fixture
def driven() -> Driven:
    """A group with a retention time of one minute and an expiry check every millisecond."""
    return Driven(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1)


@pytest.fixture
def ticking() -> Driven:
    """A group with a retention time of one minute and an expiry check every ten minutes, as in a broker."""
    return Driven(offsets_retention_minutes=1, offsets_retention_check_interval_ms=TICK_MS)


def offsets_of(driven: Driven) -> set[tuple[str, int]]:
    """The partitions with a committed offset; none if the group does not exist."""
    if not driven.exists:
        return set()
    return {(topic, partition) for topic, partition, _ in driven.group.committed_offsets()}


def consumer_group(driven: Driven, *topics: str, **request: Any) -> Joined:
    """A Stable consumer group of one member that is subscribed to these topics and has long timeouts."""
    long_timeouts: dict[str, Any] = {"session_ms": 600_000, "rebalance_ms": 600_000, "protocols": reading(*topics)}
    (member,) = driven.stable_group(1, **(long_timeouts | request))
    return member


# ---- groups that only store offsets ----------------------------------------------------------------------------


def test_an_offset_of_a_group_without_members_expires_after_the_retention_time(driven: Driven) -> None:
    driven.commit()
    driven.sleep(MINUTE_MS - 1)
    assert driven.fetch_one().committed_offset == 100
    driven.sleep(1)
    assert driven.fetch_one().committed_offset == -1


def test_the_retention_time_of_each_offset_starts_at_its_own_commit(driven: Driven) -> None:
    driven.commit(offsets={("a", 0): 1, ("a", 1): 1, ("b", 0): 1})
    driven.sleep(500)
    driven.commit(offsets={("a", 1): 2})
    driven.sleep(MINUTE_MS - 500)
    assert offsets_of(driven) == {("a", 1)}
    driven.sleep(499)
    assert offsets_of(driven) == {("a", 1)}
    driven.sleep(1)
    assert offsets_of(driven) == set()


def test_a_group_is_deleted_with_its_last_offset(driven: Driven) -> None:
    driven.commit()
    driven.sleep(MINUTE_MS)
    assert not driven.exists
    assert driven.describe(version=5).group_state == "Dead"
    assert driven.delete() is Error.GROUP_ID_NOT_FOUND
    assert driven.commit(Joined("m", 1)).error is Error.GROUP_ID_NOT_FOUND


def test_the_retention_time_starts_at_the_commit_timestamp_of_the_request(driven: Driven) -> None:
    driven.commit(version=1, commit_timestamp=driven.now - MINUTE_MS + 10)
    driven.sleep(9)
    assert driven.exists
    driven.sleep(1)
    assert not driven.exists


def test_the_timer_is_armed_for_the_first_of_several_offsets_to_expire(driven: Driven) -> None:
    driven.commit(offsets={("topic", 3): 1})
    ages = (1_000, 2_000, 0)
    partitions = [PartitionToCommit(i, 1, commit_timestamp=driven.now - age) for i, age in enumerate(ages)]
    body = OffsetCommitRequest(driven.group_id, [TopicToCommit("topic", partitions)])
    driven.send("OffsetCommit", body, version=1)
    for age, left in ((2_000, {0, 2, 3}), (1_000, {2, 3})):
        assert driven.wake_at == 1_000_000 + MINUTE_MS - age
        driven.step([], batch_time=driven.wake_at)
        assert offsets_of(driven) == {("topic", partition) for partition in left}


@pytest.mark.parametrize("retention_ms", [1_000, 3 * MINUTE_MS])
def test_a_retention_time_in_the_request_overrides_the_coordinators(driven: Driven, retention_ms: int) -> None:
    driven.commit(version=4, retention_ms=retention_ms)
    driven.sleep(retention_ms - 1)
    assert driven.exists
    driven.sleep(1)
    assert not driven.exists


def test_a_second_commit_without_a_retention_time_has_the_coordinators(driven: Driven) -> None:
    driven.commit(version=4, retention_ms=1_000)
    driven.commit()
    driven.sleep(MINUTE_MS - 1)
    assert driven.exists
    driven.sleep(1)
    assert not driven.exists


# ---- groups that had members -----------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
def test_offsets_are_kept_for_the_retention_time_after_the_last_member_has_left(
    driven: Driven, protocol_type: str
) -> None:
    driven.commit(offsets={("topic", 0): 1})
    member = consumer_group(driven, "topic", protocol_type=protocol_type)
    driven.commit(member, {("topic", 1): 2})
    driven.sleep(3 * MINUTE_MS)
    driven.leave(member)
    driven.sleep(MINUTE_MS - 1)
    assert offsets_of(driven) == {("topic", 0), ("topic", 1)}, (
        "an offset expired before the retention time since the last member left was over"
    )
    driven.sleep(1)
    assert not driven.exists


def test_a_commit_to_an_empty_group_that_had_members_does_not_extend_the_retention_time(driven: Driven) -> None:
    driven.empty_group()
    driven.commit()
    driven.sleep(MINUTE_MS - 1)
    driven.commit(offsets={("topic", 1): 1})
    driven.sleep(1)
    assert not driven.exists


def test_a_new_member_prevents_the_expiry_of_an_empty_groups_offsets(driven: Driven) -> None:
    member = consumer_group(driven, "topic")
    driven.commit(member)
    driven.leave(member)
    driven.sleep(MINUTE_MS - DELAY_MS)
    consumer_group(driven, "topic")
    driven.sleep(3 * MINUTE_MS)
    assert driven.fetch_one().committed_offset == 100


# ---- groups with members ---------------------------------------------------------------------------------------


def test_a_consumer_group_keeps_the_offsets_of_subscribed_topics(driven: Driven) -> None:
    member = consumer_group(driven, "read")
    driven.commit(member, {("read", 0): 1, ("unread", 0): 2})
    driven.sleep(MINUTE_MS - 1)
    assert offsets_of(driven) == {("read", 0), ("unread", 0)}
    driven.sleep(1)
    assert offsets_of(driven) == {("read", 0)}
    driven.sleep(5 * MINUTE_MS)
    assert (offsets_of(driven), driven.state()) == ({("read", 0)}, State.STABLE)


def test_a_requested_retention_time_does_not_apply_to_subscribed_topics(driven: Driven) -> None:
    member = consumer_group(driven, "read")
    driven.commit(member, {("read", 0): 1, ("unread", 0): 2}, version=4, retention_ms=1_000)
    driven.sleep(1_000)
    assert offsets_of(driven) == {("read", 0)}


def test_an_offset_of_an_unsubscribed_topic_expires_by_the_time_of_its_commit(driven: Driven) -> None:
    member = consumer_group(driven, "read", "dropped")
    driven.commit(member, {("read", 0): 1, ("dropped", 0): 2})
    driven.sleep(MINUTE_MS)
    answer = driven.rejoin(member, session_ms=600_000, rebalance_ms=600_000, protocols=reading("read"))
    driven.sync_all([joined(answer)])
    driven.sleep(1)
    assert offsets_of(driven) == {("read", 0)}


def test_a_group_of_another_protocol_type_keeps_all_offsets_while_it_has_members(driven: Driven) -> None:
    member = consumer_group(driven, "read", protocol_type="connect")
    driven.commit(member, {("unread", 0): 2})
    driven.sleep(5 * MINUTE_MS)
    assert offsets_of(driven) == {("unread", 0)}


def test_a_consumer_group_with_unreadable_subscriptions_keeps_all_offsets(driven: Driven) -> None:
    member = consumer_group(driven, protocols=listing("range", metadata=b"?"))
    driven.commit(member, {("unread", 0): 2})
    driven.sleep(5 * MINUTE_MS)
    assert offsets_of(driven) == {("unread", 0)}


def test_no_offset_expires_during_a_rebalance(driven: Driven) -> None:
    member = consumer_group(driven, "read")
    driven.commit(member, {("unread", 0): 2})
    newcomer = driven.join(version=3, session_ms=600_000, rebalance_ms=600_000, protocols=reading("read"))
    driven.sleep(2 * MINUTE_MS)
    assert (driven.state(), offsets_of(driven)) == (State.PREPARING_REBALANCE, {("unread", 0)})
    leader = joined(driven.rejoin(member, session_ms=600_000, rebalance_ms=600_000, protocols=reading("read")))
    driven.sleep(2 * MINUTE_MS)
    assert (driven.state(), offsets_of(driven)) == (State.COMPLETING_REBALANCE, {("unread", 0)})
    driven.sync_all([leader, joined(newcomer)])
    driven.sleep(1)
    assert (driven.state(), offsets_of(driven)) == (State.STABLE, set())


def test_a_group_with_members_and_without_offsets_is_not_deleted(driven: Driven) -> None:
    consumer_group(driven, "read")
    driven.sleep(5 * MINUTE_MS)
    assert driven.state() is State.STABLE


# ---- open transactions -----------------------------------------------------------------------------------------


def test_an_open_transaction_prevents_the_expiry_of_its_partitions_and_of_the_group(driven: Driven) -> None:
    driven.commit(offsets={("topic", 0): 1, ("topic", 1): 1})
    driven.commit_in_transaction({("topic", 0): 2})
    driven.sleep(5 * MINUTE_MS)
    assert offsets_of(driven) == {("topic", 0)}
    driven.end_transaction(commit=False)
    driven.sleep(1)
    assert not driven.exists


def test_an_open_transaction_without_offsets_prevents_the_deletion_of_the_group(driven: Driven) -> None:
    driven.commit_in_transaction()
    driven.delete_offsets({"topic": [0]})
    driven.sleep(5 * MINUTE_MS)
    assert driven.exists
    driven.end_transaction(commit=True)
    driven.sleep(1)
    assert not driven.exists


def test_the_retention_time_of_a_transactional_offset_starts_at_its_commit_request(driven: Driven) -> None:
    driven.commit_in_transaction()
    driven.sleep(MINUTE_MS - 1)
    driven.end_transaction(commit=True)
    assert driven.fetch_one().committed_offset == 100
    driven.sleep(1)
    assert not driven.exists


# ---- groups without offsets ------------------------------------------------------------------------------------


def test_an_empty_group_without_offsets_is_deleted_at_the_next_tick(driven: Driven) -> None:
    driven.empty_group()
    driven.sleep(1)
    assert not driven.exists
    assert driven.records[-1] == GroupDeleted(EXPIRED)


def test_a_pending_member_id_does_not_prevent_the_deletion_of_a_group(driven: Driven) -> None:
    member_id = driven.join().body.member_id
    driven.sleep(1)
    assert not driven.exists
    assert driven.join(member_id).error is Error.UNKNOWN_MEMBER_ID


def test_a_group_left_by_a_rejected_first_join_is_deleted(driven: Driven) -> None:
    assert driven.join(protocols=[]).error is Error.INCONSISTENT_GROUP_PROTOCOL
    driven.sleep(1)
    assert not driven.exists


def test_a_group_whose_last_offset_was_deleted_is_deleted(driven: Driven) -> None:
    driven.commit()
    driven.delete_offsets({"topic": [0]})
    driven.sleep(1)
    assert not driven.exists


def test_a_group_whose_only_topic_was_deleted_is_deleted(driven: Driven) -> None:
    driven.commit()
    driven.topics_deleted("topic")
    driven.sleep(1)
    assert not driven.exists


def test_a_group_created_after_its_deletion_starts_at_generation_1(driven: Driven) -> None:
    driven.empty_group()
    driven.sleep(1)
    member = consumer_group(driven, "read")
    assert member.generation_id == 1


# ---- ticks -----------------------------------------------------------------------------------------------------


def test_nothing_expires_between_two_ticks(ticking: Driven) -> None:
    ticking.commit()
    tick = ticking.wake_at
    assert tick is not None
    assert ticking.now + MINUTE_MS <= tick < ticking.now + MINUTE_MS + TICK_MS
    ticking.step([], batch_time=tick - 1)
    assert ticking.exists
    ticking.step([], batch_time=tick)
    assert not ticking.exists


def test_a_groups_ticks_are_one_interval_apart_across_restarts(ticking: Driven) -> None:
    ticks = set()
    for _ in range(4):
        ticking.commit(offsets={("topic", 0): 1})
        assert ticking.wake_at is not None
        ticks.add(ticking.wake_at % TICK_MS)
        ticking.now = ticking.wake_at + 123_456
        ticking.restart()
        ticking.step([])
        assert not ticking.exists, "a restart has extended the retention time"
    assert len(ticks) == 1


def test_the_ticks_of_many_groups_are_spread_over_the_interval() -> None:
    ticks = set()
    for i in range(50):
        driven = Driven(group_id=f"group-{i}", offsets_retention_check_interval_ms=TICK_MS)
        driven.commit()
        assert driven.wake_at is not None
        ticks.add(driven.wake_at % TICK_MS)
    assert len(ticks) > 40


def test_an_offset_committed_again_survives_the_tick_of_its_first_commit(ticking: Driven) -> None:
    ticking.commit()
    tick = ticking.wake_at
    assert tick is not None
    ticking.now = tick - 1
    ticking.commit(offsets={("topic", 0): 7})
    ticking.now = tick
    ticking.step([])
    assert ticking.fetch_one().committed_offset == 7
    assert ticking.wake_at == tick + TICK_MS


def test_the_journal_has_the_expired_offsets_and_the_tick(ticking: Driven) -> None:
    ticking.commit(offsets={("a", 0): 1, ("b", 1): 1, ("a", 2): 1})
    tick = ticking.wake_at
    assert tick is not None
    ticking.sleep(10 * TICK_MS)
    offsets_deleted, group_deleted = ticking.journal[-2:]
    assert offsets_deleted.record == OffsetsDeleted([TopicPartitions("a", [0, 2]), TopicPartitions("b", [1])], EXPIRED)
    assert group_deleted.record == GroupDeleted(EXPIRED)
    for entry in (offsets_deleted, group_deleted):
        assert (entry.cause, entry.timestamp) == (TimerCause("expiry", "", tick), tick)


def commit_at(driven: Driven, at: int) -> Request:
    """A commit with a given append time, ms since the epoch."""
    body = OffsetCommitRequest(driven.group_id, [TopicToCommit("topic", [PartitionToCommit(0, 7)])])
    return driven.request("OffsetCommit", body, at=at)


def test_a_commit_appended_before_the_tick_prevents_expiry_during_the_allowance() -> None:
    driven = Driven(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1, expiry_allowance_ms=500)
    driven.commit()
    due = driven.now + MINUTE_MS
    assert driven.wake_at == due + 500
    driven.step([], batch_time=due + 499)
    driven.now = due + 500
    driven.step([commit_at(driven, due - 1)])
    assert driven.fetch_one().committed_offset == 7
    driven.step([commit_at(driven, due + MINUTE_MS - 1)], batch_time=due + MINUTE_MS - 1)
    assert driven.exists


def test_a_request_after_the_tick_finds_the_group_after_expiry(driven: Driven) -> None:
    driven.commit(offsets={("topic", 1): 1})
    driven.step([commit_at(driven, driven.now + MINUTE_MS)], batch_time=driven.now + MINUTE_MS)
    assert offsets_of(driven) == {("topic", 0)}
    assert [type(record).__name__ for record in driven.records] == [
        "GroupCreated",
        "OffsetsCommitted",
        "OffsetsDeleted",
        "GroupDeleted",
        "GroupCreated",
        "OffsetsCommitted",
    ]


def test_ticks_do_not_change_a_stable_group(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.commit(member)
    before = len(driven.journal)
    driven.sleep_with_heartbeats(20 * SESSION_MS, member)
    assert (driven.state(), driven.group.generation) == (State.STABLE, 1)
    assert len(driven.journal) == before


@pytest.mark.parametrize(
    "commit",
    [{"version": 2, "retention_ms": 2**63 - 1}, {"version": 1, "commit_timestamp": 2**63 - 1}],
)
def test_an_offset_that_would_expire_beyond_the_times_of_spark_never_expires(
    ticking: Driven, commit: dict[str, Any]
) -> None:
    ticking.commit(**commit)
    assert ticking.wake_at is None
    ticking.sleep(10_000 * 365 * 24 * 3_600_000)
    assert offsets_of(ticking) == {("topic", 0)}
    ticking.commit(offsets={("topic", 1): 1})
    assert ticking.wake_at is not None, "other offsets expire as usual"
    ticking.sleep(2 * TICK_MS)
    assert offsets_of(ticking) == {("topic", 0)}
