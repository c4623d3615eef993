"""ConsumerGroupHeartbeat: joining, converging, leaving and being fenced."""

from typing import Any

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.records import GroupEpochBumped, TargetAssignmentChanged
from coordinator_logic.messages import TopicsDeletedRequest
from coordinator_logic.records import MemberRemoved
from coordinator_logic.states import State
from tests.logic.driver import reading
from tests.logic.groups.consumer.driver import REVOKE_MS, SESSION_MS, Consumer, DrivenConsumers, description, topic_id
from tests.support.parts import consumer_part

T, U = topic_id("t"), topic_id("u")
OTHER_ID = topic_id("other")


@pytest.fixture
def driven() -> DrivenConsumers:
    return DrivenConsumers()


def test_the_first_member_gets_all_partitions_with_epoch_2(driven: DrivenConsumers) -> None:
    answer = driven.enter("a", "t", topics={"t": 3})
    assert (answer.error, answer.body.member_id, answer.body.member_epoch) == (Error.NONE, "a", 2)
    assert answer.body.heartbeat_interval_ms == 5_000
    assert answer.body.assignment is not None
    assert [(each.topic_id, each.partitions) for each in answer.body.assignment.topic_partitions] == [(T, [0, 1, 2])]
    assert driven.state() is State.STABLE
    assert driven.group.group_type == "consumer"


def test_a_heartbeat_that_changes_nothing_has_no_assignment_and_no_record(driven: DrivenConsumers) -> None:
    consumer = Consumer(driven, "a").join("t", topics={"t": 3})
    recorded = len(driven.journal)
    assert driven.beat("a", consumer.epoch).body.assignment is None
    assert len(driven.journal) == recorded


def test_a_partition_moves_when_its_owner_has_revoked_it(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    b = Consumer(driven, "b").join("t")
    assert (b.owned, driven.state()) == ({}, State.RECONCILING)
    revoking = driven.beat("a", a.epoch)
    assert revoking.body.member_epoch == 2
    assert revoking.body.assignment is not None
    (kept,) = revoking.body.assignment.topic_partitions
    assert driven.beat("b", b.epoch).body.assignment is None
    assert driven.beat("a", 2, owned={T: set(kept.partitions)}).body.member_epoch == 3
    got = driven.beat("b", b.epoch)
    assert got.body.assignment is not None
    assert {p for each in got.body.assignment.topic_partitions for p in each.partitions} == {0, 1} - {*kept.partitions}
    assert driven.state() is State.STABLE


def test_a_group_of_consumers_converges_and_shares_all_partitions(driven: DrivenConsumers) -> None:
    consumers = [Consumer(driven, name).join("t", "u", topics={"t": 7, "u": 4}) for name in "abc"]
    driven.converge(*consumers)
    assert driven.state() is State.STABLE
    assert sorted(sum(map(len, each.owned.values())) for each in consumers) == [3, 4, 4]


def test_targets_are_computed_once_in_the_assignment_interval() -> None:
    driven = DrivenConsumers(group_consumer_assignment_interval_ms=1_000)
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    b = Consumer(driven, "b").join("t")
    assert (driven.state(), b.epoch) == (State.ASSIGNING, 2)
    driven.sleep(999)
    a.beat()
    assert driven.state() is State.ASSIGNING
    driven.sleep(1)
    driven.converge(a, b)
    assert driven.state() is State.STABLE
    assert {record.epoch for record in driven.records if isinstance(record, TargetAssignmentChanged)} == {2, 3}


def test_members_of_a_group_that_changes_send_heartbeats_more_often() -> None:
    driven = DrivenConsumers(group_consumer_reconciling_heartbeat_interval_ms=700)
    driven.enter("a", "t", topics={"t": 2})
    driven.sleep(4_999)
    assert driven.beat("a", 2).body.heartbeat_interval_ms == 700, "another member may come soon"
    driven.sleep(1)
    assert driven.beat("a", 2).body.heartbeat_interval_ms == 5_000

    driven.enter("b", "t")
    driven.sleep(10_000)
    assert driven.beat("b", 3).body.heartbeat_interval_ms == 700, "it waits for a partition of the other member"
    revoking = driven.beat("a", 2)
    assert revoking.body.heartbeat_interval_ms == 700
    assert revoking.body.assignment is not None
    (kept,) = revoking.body.assignment.topic_partitions
    assert driven.beat("a", 2, owned={T: set(kept.partitions)}).body.heartbeat_interval_ms == 5_000
    assert driven.beat("b", 3).body.heartbeat_interval_ms == 5_000


def test_members_send_heartbeats_more_often_while_a_target_is_not_computed_yet() -> None:
    driven = DrivenConsumers(
        group_consumer_assignment_interval_ms=15_000, group_consumer_reconciling_heartbeat_interval_ms=700
    )
    driven.enter("a", "t", topics={"t": 2})
    driven.sleep(10_000)
    assert driven.enter("b", "t").body.heartbeat_interval_ms == 700
    assert driven.beat("a", 2).body.heartbeat_interval_ms == 700
    assert driven.state() is State.ASSIGNING


def test_a_heartbeat_interval_that_is_shorter_anyway_stays() -> None:
    driven = DrivenConsumers(
        group_consumer_heartbeat_interval_ms=500, group_consumer_reconciling_heartbeat_interval_ms=700
    )
    assert driven.enter("a", "t", topics={"t": 2}).body.heartbeat_interval_ms == 500
    assert driven.beat("a", 2).body.heartbeat_interval_ms == 500


@pytest.mark.parametrize(
    ("epoch", "owned", "error"),
    [
        (4, None, Error.FENCED_MEMBER_EPOCH),
        (1, None, Error.FENCED_MEMBER_EPOCH),
        (2, None, Error.FENCED_MEMBER_EPOCH),
        (2, {}, Error.NONE),
        (0, {}, Error.NONE),
    ],
)
def test_only_the_known_epoch_a_lost_one_or_a_new_join_is_accepted(
    driven: DrivenConsumers, epoch: int, owned: dict[str, set[int]] | None, error: Error
) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    a.beat(subscribed_topic_names=["t", "u"])
    assert a.epoch == 3
    joins: dict[str, Any] = {"rebalance_timeout_ms": REVOKE_MS, "subscribed_topic_names": ["t"]} if epoch == 0 else {}
    assert driven.beat("a", epoch, owned=owned, **joins).error is error


def test_an_unknown_member_or_group_is_refused(driven: DrivenConsumers) -> None:
    assert driven.beat("a", 1).error is Error.GROUP_ID_NOT_FOUND
    assert driven.beat("a", -1).error is Error.GROUP_ID_NOT_FOUND
    Consumer(driven, "a").join("t", topics={"t": 2})
    assert driven.beat("b", 1).error is Error.UNKNOWN_MEMBER_ID
    assert driven.beat("b", -1).error is Error.UNKNOWN_MEMBER_ID
    assert driven.beat("a", 2, instance_id="i").error is Error.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_fenced_and_its_partitions_go_to_the_others(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    b = Consumer(driven, "b").join("t")
    driven.converge(a, b)
    driven.sleep(SESSION_MS - 1)
    b.beat()
    driven.sleep(1)
    assert [record.reason for record in driven.records if isinstance(record, MemberRemoved)] == [
        "its session timed out"
    ]
    assert driven.beat("a", a.epoch).error is Error.UNKNOWN_MEMBER_ID
    driven.converge(b)
    assert b.owned == {T: {0, 1}}


def test_a_member_that_does_not_revoke_in_time_is_fenced(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    b = Consumer(driven, "b").join("t")
    driven.beat("a", a.epoch)
    driven.sleep(REVOKE_MS - 1)
    assert "a" in driven.consumer.members
    driven.sleep(1)
    assert list(driven.consumer.members) == ["b"]
    driven.converge(b)
    assert b.owned == {T: {0, 1}}


def test_a_member_that_leaves_makes_the_group_empty_and_keeps_its_type(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    left = a.leave()
    assert (left.error, left.body.member_epoch, left.body.member_id) == (Error.NONE, -1, "a")
    assert driven.state() is State.EMPTY
    assert driven.group.timers.keys() <= {"expiry"}


def test_a_static_member_returns_to_its_partitions_without_a_new_epoch(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a", instance="i").join("t", topics={"t": 2})
    b = Consumer(driven, "b").join("t")
    driven.converge(a, b)
    owned, epoch = a.owned, driven.consumer.epoch
    assert driven.enter("a-2", "t", instance_id="i").error is Error.UNRELEASED_INSTANCE_ID
    assert a.leave().body.member_epoch == -2
    assert driven.beat("a", a.epoch, instance_id="i").error is Error.FENCED_MEMBER_EPOCH
    returned = Consumer(driven, "a-2", instance="i").join("t")
    assert (returned.owned, driven.consumer.epoch) == (owned, epoch)
    assert driven.beat("a", epoch, instance_id="i").error is Error.FENCED_INSTANCE_ID


def test_a_static_member_that_stays_away_is_fenced(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a", instance="i").join("t", topics={"t": 2})
    driven.sleep(10_000)
    a.leave()
    driven.sleep(SESSION_MS - 10_000)
    assert driven.state() is State.EMPTY


def test_a_full_group_refuses_new_members_only() -> None:
    driven = DrivenConsumers(group_consumer_max_size=1)
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    assert driven.enter("b", "t").error is Error.GROUP_MAX_SIZE_REACHED
    assert a.beat().error is Error.NONE


def test_an_older_client_is_given_a_member_id(driven: DrivenConsumers) -> None:
    answer = driven.enter("", "t", topics={"t": 1}, version=0)
    assert answer.error is Error.NONE
    assert answer.body.member_id


def test_a_topic_that_grows_is_noticed_with_the_next_heartbeat(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 1})
    epoch = driven.consumer.epoch
    driven.topics_described(description("t", 3), description("of no interest", 5))
    assert driven.consumer.epoch == epoch
    assert "of no interest" not in driven.consumer.topics
    driven.converge(a)
    assert a.owned == {T: {0, 1, 2}}
    assert driven.consumer.epoch == epoch + 1


def test_an_old_description_of_a_topic_is_ignored(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 3})
    driven.topics_described(description("t", 2))
    driven.converge(a)
    assert a.owned == {T: {0, 1, 2}}


def test_a_topic_that_is_deleted_is_revoked_and_one_with_a_new_id_is_another_topic(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", "u", topics={"t": 1, "u": 1})
    driven.topics_deleted("t")
    driven.converge(a)
    assert a.owned == {U: {0}}
    driven.topics_described(description("t", 2, of_id=OTHER_ID))
    driven.converge(a)
    assert a.owned == {U: {0}, OTHER_ID: {0, 1}}


def test_a_deletion_that_is_told_late_does_not_concern_the_new_topic_of_the_name(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 1})
    driven.topics_described(description("t", 2, of_id=OTHER_ID))
    driven.converge(a)
    epoch = driven.consumer.epoch
    driven.topics_deleted(t=[T])
    driven.converge(a)
    assert a.owned == {OTHER_ID: {0, 1}}
    assert driven.consumer.epoch == epoch
    driven.topics_deleted(t=[T, OTHER_ID])
    driven.converge(a)
    assert a.owned == {}


def test_a_deletion_that_names_no_id_concerns_every_topic_of_the_name(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", "u", topics={"t": 1, "u": 1})
    driven.send("TopicsDeleted", TopicsDeletedRequest(["t", "u"], {"u": [OTHER_ID]}))
    driven.converge(a)
    assert a.owned == {U: {0}}


def test_a_pattern_has_an_effect_with_the_heartbeat_after_the_one_that_brought_it(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a")
    a.join(subscribed_topic_names=None, subscribed_topic_regex="t.*", topics={"t1": 1, "t2": 1, "u": 1})
    assert a.owned == {}
    driven.converge(a)
    assert a.owned == {topic_id("t1"): {0}, topic_id("t2"): {0}}
    driven.sleep(10_001)
    driven.topics_described(description("t3", 1))
    driven.converge(a)
    assert a.owned.keys() == {topic_id("t1"), topic_id("t2"), topic_id("t3")}


def test_an_unreadable_pattern_is_refused_and_creates_nothing(driven: DrivenConsumers) -> None:
    answer = driven.enter("a", subscribed_topic_regex="(")
    assert answer.error is Error.INVALID_REGULAR_EXPRESSION
    assert not driven.exists


def test_a_subscription_without_a_topic_gives_its_partitions_back_at_once(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", "u", topics={"t": 1, "u": 1})
    answer = driven.beat("a", a.epoch, owned={T: {0}, U: {0}}, subscribed_topic_names=["t"])
    assert answer.body.assignment is not None
    assert [each.topic_id for each in answer.body.assignment.topic_partitions] == [T]


def test_every_bump_says_why(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 1})
    driven.topics_described(description("t", 2))
    a.beat()
    a.leave()
    assert [record.reason for record in driven.records if isinstance(record, GroupEpochBumped)] == [
        "member a subscribes to other topics",
        "the topics that it subscribes to have changed",
        "a: left",
    ]


def test_a_group_with_offsets_only_becomes_a_consumer_group_and_keeps_them(driven: DrivenConsumers) -> None:
    driven.commit(offsets={("t", 0): 5})
    Consumer(driven, "a").join("t", topics={"t": 1})
    assert driven.fetch_one("t", 0).committed_offset == 5


def test_an_empty_group_changes_its_type_with_the_next_member(driven: DrivenConsumers) -> None:
    driven.empty_group()
    a = Consumer(driven, "a").join("t", topics={"t": 1})
    assert a.epoch == 2
    a.leave()
    assert driven.join(version=3, protocols=reading("t")).parked
    assert consumer_part(driven.group) is None


def test_a_classic_request_to_a_consumer_group_is_refused(driven: DrivenConsumers) -> None:
    Consumer(driven, "a").join("t", topics={"t": 1})
    assert driven.describe().error_code == Error.GROUP_ID_NOT_FOUND
    assert driven.describe(version=5).group_state == "Dead"
    assert driven.delete() is Error.NON_EMPTY_GROUP


def test_a_restart_gives_members_a_full_session_and_full_time_to_revoke(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    Consumer(driven, "b").join("t")
    driven.beat("a", a.epoch)
    driven.now += SESSION_MS * 2
    driven.restart()
    driven.sleep(REVOKE_MS - 1)
    assert list(driven.consumer.members) == ["a", "b"]
    driven.sleep(1)
    assert list(driven.consumer.members) == ["b"]
