"""OffsetDelete: which offsets can be deleted, depending on the members' subscriptions."""

from collections.abc import Sequence

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import DeletedPartition, DeletedTopic, OffsetDeleteResponse
from coordinator_logic.records import OffsetsDeleted, TopicPartitions
from coordinator_logic.states import State
from tests.logic.driver import DELAY_MS, Answer, Driven, joined, listing, reading

OFFSETS = {("read", 0): 1, ("read", 1): 2, ("unread", 0): 3}
SUBSCRIBED = Error.GROUP_SUBSCRIBED_TO_TOPIC


def refused(error: Error) -> OffsetDeleteResponse:
    """The response that refuses the whole request."""
    return OffsetDeleteResponse(error_code=error)


def results(answer: Answer[OffsetDeleteResponse]) -> dict[str, list[Error]]:
    """The error of each partition, by topic; the request as a whole must have none."""
    assert answer.error is Error.NONE
    return {topic.name: [Error(p.error_code) for p in topic.partitions] for topic in answer.body.topics}


def committed(driven: Driven) -> set[tuple[str, int]]:
    """The partitions that have an offset."""
    return {(topic, partition) for topic, partition, _ in driven.group.committed_offsets()}


# ---- refused as a whole ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("topics", [{}, {"unread": [0]}])
def test_an_empty_group_id_is_refused(topics: dict[str, Sequence[int]]) -> None:
    driven = Driven(group_id="")
    driven.commit(offsets=OFFSETS)
    assert driven.delete_offsets(topics).body == refused(Error.INVALID_GROUP_ID)


@pytest.mark.parametrize("topics", [{}, {"unread": [0]}])
def test_an_absent_group_is_not_found(driven: Driven, topics: dict[str, Sequence[int]]) -> None:
    assert driven.delete_offsets(topics).body == refused(Error.GROUP_ID_NOT_FOUND)
    assert not driven.exists


def test_a_group_of_another_type_must_be_empty_regardless_of_its_metadata(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    (member,) = driven.stable_group(1, protocol_type="connect", protocols=reading("read"))
    assert driven.delete_offsets({"unread": [0]}).body == refused(Error.NON_EMPTY_GROUP)
    assert committed(driven) == set(OFFSETS)
    driven.leave(member)
    assert results(driven.delete_offsets({"unread": [0], "read": [1]})) == {"unread": [0], "read": [0]}
    assert committed(driven) == {("read", 0)}


# ---- what a consumer group reads -------------------------------------------------------------------------------


def test_offsets_of_a_subscribed_topic_stay_and_others_are_deleted(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    driven.stable_group(1, protocols=reading("read"))
    wanted = {"read": [0, 1, 7], "unread": [0, 7], "unknown": [0]}
    assert results(driven.delete_offsets(wanted)) == {"read": [SUBSCRIBED] * 3, "unread": [0, 0], "unknown": [0]}
    assert committed(driven) == {("read", 0), ("read", 1)}


def test_the_topics_of_all_members_count(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    first, second = (driven.join(version=3, protocols=reading(topic)) for topic in ("read", "other"))
    driven.sleep(2 * DELAY_MS)
    driven.sync_all([joined(first), joined(second)])
    assert results(driven.delete_offsets({"read": [0], "other": [0]})) == {"read": [SUBSCRIBED], "other": [SUBSCRIBED]}


def test_only_the_topics_of_the_protocol_that_won_the_vote_count(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    driven.stable_group(1, protocols=[*reading("read"), *reading("unread", protocol="roundrobin")])
    assert results(driven.delete_offsets({"read": [0], "unread": [0]})) == {"read": [SUBSCRIBED], "unread": [0]}


def test_while_members_rejoin_the_topics_of_the_last_generation_count(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    (member,) = driven.stable_group(1, protocols=reading("read"))
    driven.join_new("c2", protocols=reading("unread"))
    wanted = {"read": [0], "unread": [0]}
    assert results(driven.delete_offsets(wanted)) == {"read": [SUBSCRIBED], "unread": [0]}
    driven.rejoin(member, protocols=reading("other"))
    assert driven.state() is State.COMPLETING_REBALANCE
    assert results(driven.delete_offsets(wanted)) == {"read": [0], "unread": [SUBSCRIBED]}


def test_before_the_first_generation_every_topic_counts_as_subscribed(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    driven.join_new(protocols=reading("read"))
    assert driven.state() is State.PREPARING_REBALANCE
    assert results(driven.delete_offsets({"unread": [0]})) == {"unread": [SUBSCRIBED]}


@pytest.mark.parametrize("metadata", [b"", b"\x00\x00\x00\x00\x00\x09"])
def test_with_unreadable_metadata_every_topic_counts_as_subscribed(driven: Driven, metadata: bytes) -> None:
    driven.commit(offsets=OFFSETS)
    driven.stable_group(1, protocols=listing("range", metadata=metadata))
    assert results(driven.delete_offsets({"unread": [0]})) == {"unread": [SUBSCRIBED]}
    assert committed(driven) == set(OFFSETS)


def test_a_group_that_all_members_have_left_subscribes_to_nothing(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    (member,) = driven.stable_group(1, protocols=reading("read"))
    driven.leave(member)
    assert results(driven.delete_offsets({"read": [0, 1]})) == {"read": [0, 0]}
    assert committed(driven) == {("unread", 0)}


def test_a_static_members_return_with_other_topics_does_not_change_what_is_read(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    driven.stable_group(1, static=1, protocols=reading("read"))
    driven.join(instance="instance-0", protocols=reading("unread"))
    assert driven.state() is State.STABLE
    assert results(driven.delete_offsets({"read": [0], "unread": [0]})) == {"read": [SUBSCRIBED], "unread": [0]}


# ---- what is deleted -------------------------------------------------------------------------------------------


def test_a_simple_group_deletes_its_offset(driven: Driven) -> None:
    driven.commit()
    assert results(driven.delete_offsets({"topic": [0]})) == {"topic": [0]}
    assert driven.fetch() == []
    assert driven.exists


def test_the_answer_has_the_order_of_the_request(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    assert driven.delete_offsets({"unread": [3, 0], "a": [], "read": [1]}).body.topics == [
        DeletedTopic("unread", [DeletedPartition(3, 0), DeletedPartition(0, 0)]),
        DeletedTopic("a", []),
        DeletedTopic("read", [DeletedPartition(1, 0)]),
    ]


def test_the_journal_names_what_was_there_to_delete(driven: Driven) -> None:
    driven.commit(offsets=OFFSETS)
    driven.delete_offsets({"read": [0, 9], "unknown": [0]})
    assert driven.records[-1] == OffsetsDeleted([TopicPartitions("read", [0])], "deleted by a request")


@pytest.mark.parametrize("topics", [{}, {"unknown": [0]}, {"read": [9]}])
def test_deleting_no_offset_records_nothing(driven: Driven, topics: dict[str, Sequence[int]]) -> None:
    driven.commit(offsets=OFFSETS)
    before = len(driven.journal)
    assert driven.delete_offsets(topics).error is Error.NONE
    assert len(driven.journal) == before


def test_what_a_transaction_has_pending_is_deleted_too(driven: Driven) -> None:
    driven.commit(offsets={("topic", 0): 1})
    driven.commit_in_transaction({("topic", 0): 2, ("topic", 1): 3, ("topic", 2): 4}, producer_id=1)
    driven.commit_in_transaction({("topic", 0): 5}, producer_id=2)
    assert results(driven.delete_offsets({"topic": [0, 1]})) == {"topic": [0, 0]}
    assert driven.fetch() == []
    driven.end_transaction(commit=True, producer_id=1)
    driven.end_transaction(commit=True, producer_id=2)
    assert committed(driven) == {("topic", 2)}


def test_what_was_deleted_can_be_committed_again(driven: Driven) -> None:
    driven.commit()
    driven.delete_offsets({"topic": [0]})
    driven.commit(offsets={("topic", 0): 5})
    assert driven.fetch_one().committed_offset == 5
