"""TxnOffsetCommit and WriteTxnMarkers: offsets that take effect when a producer's transaction commits."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    CommittedPartition,
    CommittedTopic,
    FetchedPartition,
    FetchedTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicToFetch,
    TxnMarker,
    TxnMarkerPartitionResult,
    TxnMarkerResult,
    TxnMarkerTopic,
    TxnMarkerTopicResult,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnPartitionToCommit,
    TxnTopicToCommit,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from coordinator_logic.records import (
    GroupCreated,
    OffsetCommitted,
    TransactionalOffsetsCommitted,
    TransactionEnded,
    directory_entry,
)
from coordinator_logic.states import State
from tests.logic.driver import GROUP_ID, SESSION_MS, Answer, Driven, Joined, errors_of
from tests.support.parts import classic

UNSTABLE = Error.UNSTABLE_OFFSET_COMMIT
TWO_TOPICS = {("b", 1): 5, ("a", 0): 7, ("a", 3): 9}


def the_error(answer: Answer[TxnOffsetCommitResponse]) -> Error:
    """The error of the request, which every partition has, too."""
    assert set(errors_of(answer)) == {answer.error}
    return answer.error


def offset_of(driven: Driven, partition: int = 0) -> int:
    """The committed offset of a partition of the topic, -1 for none."""
    return driven.fetch_one("topic", partition).committed_offset


# ---- pending, then committed or dropped ------------------------------------------------------------------------


def test_a_position_counts_from_the_commit_of_its_transaction_on(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 100})
    assert offset_of(driven) == -1
    assert driven.fetch() == []
    driven.end_transaction(commit=True)
    assert offset_of(driven) == 100


def test_an_offset_of_an_aborted_transaction_is_dropped(driven: Driven) -> None:
    driven.commit(offsets={("topic", 0): 1})
    driven.commit_in_transaction({("topic", 0): 100, ("topic", 1): 200})
    driven.end_transaction(commit=False)
    assert (offset_of(driven, 0), offset_of(driven, 1)) == (1, -1)
    assert driven.group.open_transactions == {}


def test_of_two_positions_in_one_transaction_the_later_counts(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 100, ("topic", 1): 7})
    driven.commit_in_transaction({("topic", 0): 50})
    driven.end_transaction(commit=True)
    assert (offset_of(driven, 0), offset_of(driven, 1)) == (50, 7)


def test_a_plain_commit_during_the_transaction_is_newer_than_what_the_transaction_brings(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 100, ("topic", 1): 200})
    driven.commit(offsets={("topic", 0): 1})
    driven.end_transaction(commit=True)
    assert (offset_of(driven, 0), offset_of(driven, 1)) == (1, 200)


def test_a_plain_commit_before_it_is_older(driven: Driven) -> None:
    driven.commit(offsets={("topic", 0): 100})
    driven.commit_in_transaction({("topic", 0): 1})
    driven.end_transaction(commit=True)
    assert offset_of(driven) == 1


@pytest.mark.parametrize("first_to_end", [1, 2])
def test_of_two_producers_the_later_commit_counts_whichever_transaction_ends_first(
    driven: Driven, first_to_end: int
) -> None:
    driven.commit_in_transaction({("topic", 0): 10, ("topic", 1): 11}, producer_id=1)
    driven.commit_in_transaction({("topic", 0): 20, ("topic", 2): 22}, producer_id=2)
    driven.end_transaction(commit=True, producer_id=first_to_end)
    driven.end_transaction(commit=True, producer_id=3 - first_to_end)
    assert [offset_of(driven, partition) for partition in range(3)] == [20, 11, 22]


def test_each_producers_transaction_ends_for_itself(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 10}, producer_id=1)
    driven.commit_in_transaction({("topic", 1): 20}, producer_id=2)
    driven.end_transaction(commit=True, producer_id=1)
    assert (offset_of(driven, 0), offset_of(driven, 1)) == (10, -1)
    driven.end_transaction(commit=False, producer_id=2)
    assert (offset_of(driven, 0), offset_of(driven, 1)) == (10, -1)


def test_a_producers_next_transaction_is_a_new_one(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 10, ("topic", 1): 11})
    driven.end_transaction(commit=False)
    driven.commit_in_transaction({("topic", 0): 20})
    driven.end_transaction(commit=True)
    assert (offset_of(driven, 0), offset_of(driven, 1)) == (20, -1)


@pytest.mark.parametrize("commit", [True, False])
def test_a_repeated_end_or_one_of_an_unknown_producer_changes_nothing(driven: Driven, commit: bool) -> None:
    driven.commit_in_transaction({("topic", 0): 10}, producer_id=1)
    driven.end_transaction(commit=True, producer_id=1)
    driven.commit(offsets={("topic", 0): 20})
    before = len(driven.journal)
    for producer_id in (1, 99):
        assert driven.end_transaction(commit=commit, producer_id=producer_id).error is Error.NONE
    assert offset_of(driven) == 20
    assert len(driven.journal) == before


def test_an_end_is_none_of_an_absent_groups_business(driven: Driven) -> None:
    assert driven.end_transaction(commit=True).error is Error.NONE
    assert not driven.exists


def test_a_deleted_group_loses_its_pending_offsets(driven: Driven) -> None:
    driven.commit_in_transaction()
    assert driven.delete() is Error.NONE
    driven.end_transaction(commit=True)
    assert not driven.exists
    driven.commit(offsets={("topic", 1): 1})
    driven.end_transaction(commit=True)
    assert (offset_of(driven, 0), offset_of(driven, 1)) == (-1, 1)


def test_pending_positions_outlive_a_restart_and_the_members(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.commit_in_transaction({("topic", 0): 100}, member)
    driven.restart()
    driven.sleep(10 * SESSION_MS)
    assert driven.state() is State.EMPTY
    driven.end_transaction(commit=True)
    assert offset_of(driven) == 100


# ---- stable offsets --------------------------------------------------------------------------------------------


def test_a_fetch_that_requires_stable_offsets_reports_open_transactions(driven: Driven) -> None:
    driven.commit(offsets={("foo", 0): 100, ("foo", 1): 110, ("bar", 0): 200})
    driven.commit_in_transaction({("foo", 1): 111, ("bar", 0): 201, ("bar", 1): 211})
    wanted = {"foo": [0, 1], "bar": [0, 1, 2]}

    assert driven.fetch(wanted, require_stable=True) == [
        FetchedTopic("foo", [FetchedPartition(0, 100), FetchedPartition(1, error_code=UNSTABLE)]),
        FetchedTopic(
            "bar",
            [
                FetchedPartition(0, error_code=UNSTABLE),
                FetchedPartition(1, error_code=UNSTABLE),
                FetchedPartition(2),
            ],
        ),
    ]
    assert driven.fetch(wanted) == [
        FetchedTopic("foo", [FetchedPartition(0, 100), FetchedPartition(1, 110)]),
        FetchedTopic("bar", [FetchedPartition(0, 200), FetchedPartition(1), FetchedPartition(2)]),
    ]

    driven.end_transaction(commit=True)
    assert driven.fetch(wanted, require_stable=True) == [
        FetchedTopic("foo", [FetchedPartition(0, 100), FetchedPartition(1, 111)]),
        FetchedTopic("bar", [FetchedPartition(0, 201), FetchedPartition(1, 211), FetchedPartition(2)]),
    ]


def test_a_fetch_of_all_offsets_has_no_pending_ones(driven: Driven) -> None:
    driven.commit(offsets={("foo", 0): 100, ("foo", 1): 110})
    driven.commit_in_transaction({("foo", 1): 111, ("foo", 2): 1, ("bar", 0): 201})
    assert driven.fetch(require_stable=True) == [
        FetchedTopic("foo", [FetchedPartition(0, 100), FetchedPartition(1, error_code=UNSTABLE)])
    ]
    driven.end_transaction(commit=False)
    assert driven.fetch(require_stable=True) == [
        FetchedTopic("foo", [FetchedPartition(0, 100), FetchedPartition(1, 110)])
    ]


def test_a_partition_is_stable_when_the_last_of_its_transactions_has_ended(driven: Driven) -> None:
    for producer_id in (1, 2):
        driven.commit_in_transaction({("topic", 0): producer_id}, producer_id=producer_id)
    for producer_id in (2, 1):
        ((unstable,),) = (topic.partitions for topic in driven.fetch({"topic": [0]}, require_stable=True))
        assert unstable == FetchedPartition(0, error_code=UNSTABLE)
        driven.end_transaction(commit=producer_id == 1, producer_id=producer_id)
    assert driven.fetch({"topic": [0]}, require_stable=True) == [FetchedTopic("topic", [FetchedPartition(0, 1)])]


def test_in_version_7_stable_offsets_of_the_group_can_be_fetched(driven: Driven) -> None:
    driven.commit_in_transaction()
    body = OffsetFetchRequest(GROUP_ID, [TopicToFetch("topic", [0])], require_stable=True)
    answer: Answer[OffsetFetchResponse] = driven.send("OffsetFetch", body, version=7)
    assert answer.body.topics == [FetchedTopic("topic", [FetchedPartition(0, error_code=UNSTABLE)])]


# ---- permission to commit --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_a_commit_in_a_transaction_without_a_member_creates_a_simple_group(driven: Driven, version: int) -> None:
    assert the_error(driven.commit_in_transaction(version=version)) is Error.NONE
    group = classic(driven.group)
    assert (group.state, group.generation, group.protocol_type, group.members) == (State.EMPTY, 0, None, {})
    assert driven.records[0] == GroupCreated()
    driven.sleep(driven.config.transactional_id_expiration_ms)
    assert driven.exists, "the open transaction keeps it"


@pytest.mark.parametrize("generation", [0, 10])
@pytest.mark.parametrize("version", range(6))
def test_from_version_3_on_a_generation_of_an_absent_group_is_refused(
    driven: Driven, version: int, generation: int
) -> None:
    answer = driven.commit_in_transaction(TWO_TOPICS, Joined("m", generation), version=version)
    assert the_error(answer) is (Error.ILLEGAL_GENERATION if version >= 3 else Error.NONE)
    assert driven.exists is (version < 3)


@pytest.mark.parametrize("version", range(3))
def test_before_version_3_the_member_is_not_checked(driven: Driven, version: int) -> None:
    driven.stable_group(1)
    unknown = Joined("unknown-id", 99, "unknown")
    assert the_error(driven.commit_in_transaction(member=unknown, version=version)) is Error.NONE


@pytest.mark.parametrize("version", range(3, 6))
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, Error.NONE),
        ({"group_instance_id": None}, Error.NONE),
        ({"member_id": "unknown-id", "group_instance_id": None}, Error.UNKNOWN_MEMBER_ID),
        ({"member_id": "", "group_instance_id": None}, Error.UNKNOWN_MEMBER_ID),
        ({"member_id": "unknown-id"}, Error.FENCED_INSTANCE_ID),
        ({"member_id": "", "generation_id": -1}, Error.FENCED_INSTANCE_ID),
        ({"group_instance_id": "unknown"}, Error.UNKNOWN_MEMBER_ID),
        ({"generation_id": 2}, Error.ILLEGAL_GENERATION),
        ({"generation_id": -1}, Error.ILLEGAL_GENERATION),
        ({"member_id": "", "generation_id": 0, "group_instance_id": None}, Error.UNKNOWN_MEMBER_ID),
        ({"member_id": "", "generation_id": -1, "group_instance_id": None}, Error.NONE),
    ],
)
def test_from_version_3_on_the_member_and_its_generation_are_checked(
    driven: Driven, version: int, changes: dict[str, Any], error: Error
) -> None:
    (member,) = driven.stable_group(1, static=1)
    answer = driven.commit_in_transaction(TWO_TOPICS, replace(member, **changes), version=version)
    assert the_error(answer) is error
    assert bool(driven.group.open_transactions) is (error is Error.NONE)


def test_a_replaced_static_member_is_fenced(driven: Driven) -> None:
    (member,) = driven.stable_group(1, static=1)
    driven.join(instance="instance-0")
    assert the_error(driven.commit_in_transaction(member=member)) is Error.FENCED_INSTANCE_ID


def test_an_emptied_group_accepts_commits_without_a_generation(driven: Driven) -> None:
    driven.empty_group()
    for sender in (Joined(""), Joined("anyone"), Joined("", -1, "instance")):
        assert the_error(driven.commit_in_transaction(member=sender)) is Error.NONE
    for generation in (0, 2):
        answer = driven.commit_in_transaction(member=Joined("m", generation))
        assert the_error(answer) is Error.UNKNOWN_MEMBER_ID


def test_between_join_and_assignment_a_member_may_commit_unlike_without_a_transaction(driven: Driven) -> None:
    (member,) = driven.join_with_members(1)
    assert driven.commit(member).error is Error.REBALANCE_IN_PROGRESS
    assert the_error(driven.commit_in_transaction(member=member)) is Error.NONE


def test_while_members_rejoin_the_old_generation_may_commit(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.join_new("c2")
    assert the_error(driven.commit_in_transaction(member=member)) is Error.NONE


@pytest.mark.parametrize("version", range(6))
def test_an_empty_group_id_is_refused_on_every_partition(version: int) -> None:
    driven = Driven(group_id="")
    assert the_error(driven.commit_in_transaction(TWO_TOPICS, version=version)) is Error.INVALID_GROUP_ID
    assert not driven.exists


# ---- producers that were fenced --------------------------------------------------------------------------------


def test_an_older_epoch_of_the_producer_can_neither_commit_nor_end(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 1}, producer_epoch=5)
    assert the_error(driven.commit_in_transaction({("topic", 0): 2}, producer_epoch=4)) is Error.INVALID_PRODUCER_EPOCH
    assert driven.end_transaction(commit=False, producer_epoch=4).error is Error.INVALID_PRODUCER_EPOCH
    driven.end_transaction(commit=True, producer_epoch=5)
    assert offset_of(driven) == 1


def test_a_newer_epochs_commit_shuts_the_older_one_out(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 1}, producer_epoch=5)
    assert the_error(driven.commit_in_transaction({("topic", 0): 2}, producer_epoch=6)) is Error.NONE
    assert the_error(driven.commit_in_transaction({("topic", 0): 3}, producer_epoch=5)) is Error.INVALID_PRODUCER_EPOCH


def test_a_newer_epoch_ends_what_an_older_one_began(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 1}, producer_epoch=5)
    assert driven.end_transaction(commit=False, producer_epoch=6).error is Error.NONE
    assert driven.records[-1] == TransactionEnded(7, 6, False)
    assert driven.group.open_transactions == {}


# ---- what a commit does ----------------------------------------------------------------------------------------


def test_a_commit_keeps_epoch_metadata_and_its_own_time(driven: Driven) -> None:
    partition = TxnPartitionToCommit(0, 100, 4, "why")
    body = TxnOffsetCommitRequest("id", GROUP_ID, 7, 0, [TxnTopicToCommit("topic", [partition])])
    driven.send("TxnOffsetCommit", body)
    committed_at = driven.now
    driven.sleep(1_000)
    driven.end_transaction(commit=True)
    position = OffsetCommitted("topic", 0, 100, 4, "why", committed_at, None)
    assert driven.records[-2:] == [
        TransactionalOffsetsCommitted("id", 7, 0, [position]),
        TransactionEnded(7, 0, True),
    ]
    assert driven.group.offsets["topic"][0] == CommittedOffset(100, 4, "why", committed_at, None, 2)


def test_the_answer_has_the_order_of_the_request(driven: Driven) -> None:
    assert driven.commit_in_transaction(TWO_TOPICS).body.topics == [
        CommittedTopic("b", [CommittedPartition(1, 0)]),
        CommittedTopic("a", [CommittedPartition(0, 0), CommittedPartition(3, 0)]),
    ]


def test_too_much_metadata_is_an_error_of_its_partition_only(driven: Driven) -> None:
    partitions = [
        TxnPartitionToCommit(0, 1, -1, "m" * 4096),
        TxnPartitionToCommit(1, 1, -1, "m" * 4097),
        TxnPartitionToCommit(2, 1, -1, "😀" * 2048),
        TxnPartitionToCommit(3, 1, -1, "😀" * 2048 + "m"),
    ]
    body = TxnOffsetCommitRequest("id", GROUP_ID, 7, 0, [TxnTopicToCommit("topic", partitions)])
    answer: Answer[TxnOffsetCommitResponse] = driven.send("TxnOffsetCommit", body)
    assert errors_of(answer) == [0, 12, 0, 12]
    assert answer.error is Error.NONE
    driven.end_transaction(commit=True)
    assert set(driven.group.offsets["topic"]) == {0, 2}


def test_a_commit_is_no_sign_of_life(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.sleep(SESSION_MS - 1)
    driven.commit_in_transaction(member=member)
    driven.sleep(1)
    assert driven.state() is State.EMPTY


@pytest.mark.parametrize("topics", [[], [TxnTopicToCommit("topic", [])]])
@pytest.mark.parametrize("generation", [-1, 5])
def test_a_commit_without_partitions_is_answered_without_checking_the_group(
    driven: Driven, topics: list[TxnTopicToCommit], generation: int
) -> None:
    body = TxnOffsetCommitRequest("id", GROUP_ID, 7, 0, topics, generation)
    answer: Answer[TxnOffsetCommitResponse] = driven.send("TxnOffsetCommit", body)
    assert (answer.error, answer.body.topics) == (Error.NONE, [])
    assert not driven.exists


def test_an_offset_is_counted_when_its_transaction_is_committed(driven: Driven) -> None:
    for producer_id, partition in ((4, 0), (5, 0), (6, 1)):
        driven.commit_in_transaction({("topic", partition): 1}, producer_id=producer_id)
    assert directory_entry(driven.group).offsets == 0
    for producer_id in (4, 5, 6):
        driven.end_transaction(commit=True, producer_id=producer_id)
    assert directory_entry(driven.group).offsets == 2


# ---- the answer to a marker ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
def test_several_markers_are_answered_each_with_its_own_result(driven: Driven, version: int) -> None:
    driven.commit_in_transaction({("topic", 0): 1}, producer_id=1)
    driven.commit_in_transaction({("topic", 1): 2}, producer_id=2, producer_epoch=3)
    markers = [
        TxnMarker(1, 0, True, [TxnMarkerTopic("__consumer_offsets", [4, 2])]),
        TxnMarker(2, 2, True, [TxnMarkerTopic("__consumer_offsets", [4])]),
        TxnMarker(3, 0, False),
    ]
    answer: Answer[WriteTxnMarkersResponse]
    answer = driven.send("WriteTxnMarkers", WriteTxnMarkersRequest(markers), version=version)
    fenced = Error.INVALID_PRODUCER_EPOCH
    assert answer.body.markers == [
        TxnMarkerResult(
            1,
            [
                TxnMarkerTopicResult(
                    "__consumer_offsets", [TxnMarkerPartitionResult(4, 0), TxnMarkerPartitionResult(2, 0)]
                )
            ],
        ),
        TxnMarkerResult(2, [TxnMarkerTopicResult("__consumer_offsets", [TxnMarkerPartitionResult(4, fenced)])]),
        TxnMarkerResult(3, []),
    ]
    assert answer.error is fenced
    assert (offset_of(driven, 0), offset_of(driven, 1)) == (1, -1)
