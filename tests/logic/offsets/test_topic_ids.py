"""Offsets of a topic that was deleted, and of another one that was created under its name: only ids tell them apart."""

import msgspec
import pytest

from coordinator_logic import snapshot
from coordinator_logic.messages import FetchedPartition, FetchedTopic, OffsetCommitRequest
from coordinator_logic.records import JournalEntry, OffsetsDeleted, TopicPartitions, entry_decoder, fold
from tests.logic.driver import Driven

OLD, NEW, OTHER = "kQXTr5ZaQ4aTOGxdwzcvBw", "yf4HLMwkTNqR31X-kvqSOQ", "AAAAAAAAAAAAAAAAAAAABQ"


def offset_of(driven: Driven, topic_id: str = "", partition: int = 0) -> int:
    """The committed offset of a partition for the topic with an id, -1 for none."""
    return driven.fetch_one("topic", partition, topic_id=topic_id).committed_offset


@pytest.mark.parametrize("in_transaction", [False, True])
def test_an_offset_is_not_there_for_a_topic_with_another_id(driven: Driven, in_transaction: bool) -> None:
    if in_transaction:
        driven.commit_in_transaction(topic_id=OLD)
        driven.end_transaction(commit=True)
    else:
        driven.commit(topic_id=OLD, metadata="m", leader_epoch=4)
    assert offset_of(driven, OLD) == 100
    assert offset_of(driven) == 100, "without an id, the topic may be the one of the commit"
    assert driven.fetch_one(topic_id=NEW) == FetchedPartition(0)


def test_an_offset_without_an_id_is_there_for_every_topic_of_the_name(driven: Driven) -> None:
    driven.commit()
    assert [offset_of(driven, topic_id) for topic_id in (OLD, NEW, "")] == [100, 100, 100]


def test_a_commit_for_the_new_topic_replaces_the_old_offset(driven: Driven) -> None:
    driven.commit(topic_id=OLD)
    driven.commit(offsets={("topic", 0): 7}, topic_id=NEW)
    assert [offset_of(driven, OLD), offset_of(driven, NEW)] == [-1, 7]


def test_the_answers_have_the_ids_of_the_requests(driven: Driven) -> None:
    assert [topic.topic_id for topic in driven.commit(topic_id=OLD).body.topics] == [OLD]
    assert [topic.topic_id for topic in driven.fetch({"topic": [0]}, topic_id=NEW)] == [NEW]
    refused = driven.send("OffsetCommit", msgspec.convert(_by_an_unknown_member(), OffsetCommitRequest), version=9)
    assert [topic.topic_id for topic in refused.body.topics] == [OLD]


def _by_an_unknown_member() -> dict[str, object]:
    topics = [{"name": "topic", "topicId": OLD, "partitions": [{"partitionIndex": 0, "committedOffset": 1}]}]
    return {"groupId": "group", "memberId": "unknown", "generationIdOrMemberEpoch": 1, "topics": topics}


def test_all_offsets_are_listed_with_their_ids_for_each_id_apart(driven: Driven) -> None:
    driven.commit(offsets={("topic", 0): 1, ("topic", 1): 2}, topic_id=OLD)
    driven.commit(offsets={("topic", 1): 3, ("topic", 2): 4}, topic_id=NEW)
    assert driven.fetch() == [
        FetchedTopic("topic", [FetchedPartition(0, 1)], OLD),
        FetchedTopic("topic", [FetchedPartition(1, 3), FetchedPartition(2, 4)], NEW),
    ]


@pytest.mark.parametrize("topic_id", ["x", OLD + "\n", OLD * 2, "x" * 100_000])
def test_what_is_no_id_is_refused(topic_id: str) -> None:
    topic = {"name": "topic", "topicId": topic_id, "partitions": []}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"groupId": "group", "topics": [topic]}, OffsetCommitRequest)


# ---- deletion --------------------------------------------------------------------------------------------------


def test_a_late_word_of_the_deletion_spares_the_offsets_of_the_new_topic(driven: Driven) -> None:
    driven.commit(offsets={("topic", 0): 1, ("topic", 1): 2}, topic_id=OLD)
    driven.commit(offsets={("topic", 1): 3}, topic_id=NEW)
    driven.commit(offsets={("topic", 2): 4})
    driven.topics_deleted(topic=[OLD])
    assert [offset_of(driven, partition=each) for each in range(3)] == [-1, 3, -1], "as in Kafka, also one without id"
    assert driven.records[-1] == OffsetsDeleted([TopicPartitions("topic", [0, 2], OLD)], "the topic was deleted")


def test_a_word_of_another_deletion_deletes_nothing(driven: Driven) -> None:
    driven.commit(topic_id=NEW)
    before = len(driven.journal)
    driven.topics_deleted(topic=[OLD, OTHER])
    assert len(driven.journal) == before
    driven.topics_deleted(topic=[OTHER, NEW])
    assert offset_of(driven) == -1


def test_a_deletion_by_name_deletes_the_offsets_of_every_topic_of_the_name(driven: Driven) -> None:
    driven.commit(topic_id=OLD)
    driven.commit(offsets={("topic", 1): 2}, topic_id=NEW)
    driven.topics_deleted("topic")
    assert driven.fetch() == []


def test_a_pending_offset_of_the_deleted_topic_does_not_land_in_the_new_one(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 20, ("stays", 0): 2}, topic_id=OLD)
    driven.commit_in_transaction({("topic", 0): 30}, producer_id=8, topic_id=NEW)
    driven.topics_deleted(topic=[OLD])
    assert driven.group.has_pending_offset("topic", 0), "the other producer's is of the new topic"
    driven.end_transaction(commit=True)
    assert offset_of(driven) == -1
    driven.end_transaction(commit=True, producer_id=8)
    assert offset_of(driven) == 30


def test_a_pending_offset_of_the_deleted_topic_is_not_there_for_the_new_one_although_no_word_came(
    driven: Driven,
) -> None:
    driven.commit_in_transaction(topic_id=OLD)
    driven.end_transaction(commit=True)
    assert [offset_of(driven, OLD), offset_of(driven, NEW)] == [100, -1]


# ---- what is kept ----------------------------------------------------------------------------------------------


def test_journal_and_snapshot_keep_the_ids_of_committed_and_pending_offsets(driven: Driven) -> None:
    driven.commit(topic_id=OLD)
    driven.commit(offsets={("topic", 1): 5})
    driven.commit_in_transaction({("topic", 2): 6, ("topic", 3): 7}, topic_id=NEW)
    driven.topics_deleted(topic=[OTHER])
    decoder, encoded = entry_decoder(), [msgspec.json.encode(entry) for entry in driven.journal]
    entries: list[JournalEntry] = [decoder.decode(entry) for entry in encoded]
    for again in (fold(entries), snapshot.decode(snapshot.encode(driven.group))):
        assert again is not None
        assert again.offsets == driven.group.offsets
        assert again.open_transactions == driven.group.open_transactions
        assert again.offsets["topic"][0].topic_id == OLD
        assert {each.topic_id for each in again.open_transactions[7].offsets["topic"].values()} == {NEW}
    assert sum(b"topicId" in entry for entry in encoded) == 3, "the commit without an id is as short as before"


def test_a_reset_sets_the_id_of_the_topic_that_the_operator_has_seen(driven: Driven) -> None:
    driven.commit(topic_id=OLD)
    driven.reset_offsets({("topic", 0): 5}, {("topic", 0): 100}, topic_id=NEW)
    assert [offset_of(driven, OLD), offset_of(driven, NEW)] == [-1, 5]
