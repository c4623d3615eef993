"""Offsets of a consumer group, by member epoch; its description, its members' removal, and its end."""

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import GroupToFetch, LeavingMember, OffsetFetchRequest, OffsetFetchResponse
from coordinator_logic.records import directory_entry
from coordinator_logic.states import State
from tests.logic.driver import Answer, Joined, errors_of, leave_errors
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers, topic_id

T = topic_id("t")


@pytest.fixture
def driven() -> DrivenConsumers:
    return DrivenConsumers()


def two_members(driven: DrivenConsumers) -> tuple[Consumer, Consumer]:
    """Two members that have converged: partition 0 stayed with the first since epoch 2."""
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    b = Consumer(driven, "b").join("t")
    driven.converge(a, b)
    return a, b


def commit_errors(driven: DrivenConsumers, member_id: str, epoch: int, partition: int, version: int = 9) -> list[Error]:
    return errors_of(driven.commit(Joined(member_id, epoch), {("t", partition): 7}, version=version))


def fetch_error(driven: DrivenConsumers, member_id: str | None, epoch: int) -> Error:
    body = OffsetFetchRequest(groups=[GroupToFetch(driven.group_id, None, member_id, epoch)])
    answer: Answer[OffsetFetchResponse] = driven.send("OffsetFetch", body)
    return Error(answer.body.groups[0].error_code)


def test_a_commit_needs_the_members_epoch_or_one_since_which_it_has_the_partition(driven: DrivenConsumers) -> None:
    a, b = two_members(driven)
    (kept,), (moved,) = a.owned[T], b.owned[T]
    assert (a.epoch, b.epoch) == (3, 3)
    assert commit_errors(driven, "a", 3, kept) == [Error.NONE]
    assert commit_errors(driven, "a", 2, kept) == [Error.NONE]
    assert commit_errors(driven, "a", 2, moved) == [Error.STALE_MEMBER_EPOCH]
    assert commit_errors(driven, "b", 2, moved) == [Error.STALE_MEMBER_EPOCH]
    assert commit_errors(driven, "a", 4, kept) == [Error.STALE_MEMBER_EPOCH]
    assert commit_errors(driven, "nobody", 3, kept) == [Error.UNKNOWN_MEMBER_ID]
    assert commit_errors(driven, "a", 3, kept, version=8) == [Error.UNSUPPORTED_VERSION]


def test_a_commit_without_a_member_needs_a_group_without_members(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 1})
    assert errors_of(driven.commit()) == [Error.UNKNOWN_MEMBER_ID]
    a.leave()
    assert errors_of(driven.commit()) == [Error.NONE]


def test_a_commit_does_not_extend_a_session(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 1})
    driven.sleep(44_000)
    assert commit_errors(driven, "a", a.epoch, 0) == [Error.NONE]
    driven.sleep(1_000)
    assert driven.state() is State.EMPTY


def test_offsets_in_transactions_are_fenced_with_the_error_of_classic_groups(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 1})
    assert errors_of(driven.commit_in_transaction({("t", 0): 1}, Joined("a", a.epoch))) == [Error.NONE]
    assert errors_of(driven.commit_in_transaction({("t", 0): 1}, Joined("a", 1))) == [Error.ILLEGAL_GENERATION]
    assert errors_of(driven.commit_in_transaction({("t", 0): 1})) == [Error.NONE]


def test_a_fetch_names_no_member_or_a_member_with_its_epoch(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 1})
    assert fetch_error(driven, None, -1) is Error.NONE
    assert fetch_error(driven, "a", a.epoch) is Error.NONE
    assert fetch_error(driven, "a", 1) is Error.STALE_MEMBER_EPOCH
    assert fetch_error(driven, "", -1) is Error.UNKNOWN_MEMBER_ID


def test_offsets_of_subscribed_topics_neither_expire_nor_can_be_deleted() -> None:
    driven = DrivenConsumers(
        group_consumer_session_timeout_ms=10**9, offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000
    )
    a = Consumer(driven, "a").join("t", topics={"t": 1})
    driven.commit(Joined("a", a.epoch), {("t", 0): 1, ("u", 0): 2})
    assert [p.error_code for p in driven.delete_offsets({"t": [0]}).body.topics[0].partitions] == [86]
    driven.sleep(62_000)
    assert [topic.name for topic in driven.fetch()] == ["t"]
    a.leave()
    driven.sleep(62_000)
    assert not driven.exists


def test_a_description_has_what_members_hold_and_what_they_will_get(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    Consumer(driven, "b", instance="i").join("t", rack_id="r")
    driven.beat("a", a.epoch)
    described = driven.describe_consumers()
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Reconciling", 3, 3)
    assert described.assignor_name == "uniform"
    first, second = sorted(described.members, key=lambda member: member.member_id)
    assert (first.member_epoch, second.member_epoch, second.rack_id, second.instance_id) == (2, 3, "r", "i")
    assert [(each.topic_name, each.partitions) for each in first.assignment.topic_partitions] == [("t", [0, 1])]
    assert [len(each.partitions) for each in first.target_assignment.topic_partitions] == [1]
    assert second.assignment.topic_partitions == []
    assert first.member_type == 1
    assert driven.describe_consumers(version=0).members[0].member_type == -1


def test_members_are_described_in_the_order_of_a_brokers_hash_table(driven: DrivenConsumers) -> None:
    for member_id in ("a", "b", "c", "d", "e", "f", "g"):
        Consumer(driven, member_id).join("t", topics={"t": 1})
    # What a TimelineHashMap of Kafka 4.3.1 gives.
    assert "".join(each.member_id for each in driven.describe_consumers().members) == "fcebgda"


def test_a_classic_group_and_an_absent_one_have_no_such_description(driven: DrivenConsumers) -> None:
    assert driven.describe_consumers().error_code == Error.GROUP_ID_NOT_FOUND
    driven.stable_group()
    assert driven.describe_consumers().error_code == Error.GROUP_ID_NOT_FOUND


def test_the_directory_names_the_type(driven: DrivenConsumers) -> None:
    two_members(driven)
    entry = directory_entry(driven.group)
    assert (entry.group_type, entry.protocol_type, entry.members, entry.generation) == ("consumer", "consumer", 2, 3)


def test_an_operator_removes_members_with_one_new_epoch(driven: DrivenConsumers) -> None:
    Consumer(driven, "a").join("t", topics={"t": 2})
    Consumer(driven, "b", instance="i").join("t")
    epoch = driven.consumer.epoch
    answer = driven.leave(LeavingMember("a"), LeavingMember("", "i"), LeavingMember("x"), LeavingMember("x", "i"))
    assert leave_errors(answer) == [Error.NONE, Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID]
    assert driven.consumer.epoch == epoch + 1
    assert driven.state() is State.EMPTY


def test_an_empty_consumer_group_can_be_deleted(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    assert driven.delete() is Error.NON_EMPTY_GROUP
    a.leave()
    assert driven.delete() is Error.NONE
    assert not driven.exists


# ---- ResetOffsets ----------------------------------------------------------------------------------------------


def test_a_forced_reset_removes_the_members_which_then_join_again() -> None:
    group = DrivenConsumers()
    consumers = [Consumer(group, "a").join("t", topics={"t": 2}), Consumer(group, "b").join("t")]
    group.converge(*consumers)
    epoch = group.consumer.epoch
    assert group.reset_offsets({("t", 0): 5}).error is Error.NON_EMPTY_GROUP
    answer = group.reset_offsets({("t", 0): 5}, force=True, reason="why")
    assert (answer.error, answer.body.rejoining) == (Error.NONE, 2)
    assert (group.state(), group.consumer.epoch) == (State.EMPTY, epoch + 1)
    late = group.commit(Joined("a", consumers[0].epoch), {("t", 0): 99})
    assert set(errors_of(late)) == {Error.UNKNOWN_MEMBER_ID}
    assert group.beat("a", consumers[0].epoch).error is Error.UNKNOWN_MEMBER_ID
    again = [consumer.join("t") for consumer in consumers]
    group.converge(*again)
    assert sum(len(owned) for consumer in again for owned in consumer.owned.values()) == 2
    assert group.fetch_one("t").committed_offset == 5


def test_a_reset_of_a_consumer_group_without_members_needs_no_force() -> None:
    group = DrivenConsumers()
    Consumer(group, "a").join("t", topics={"t": 1}).leave()
    assert group.reset_offsets({("t", 0): 5}).error is Error.NONE
    assert group.fetch_one("t").committed_offset == 5
