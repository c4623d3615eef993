from dataclasses import replace
from typing import Any

import pytest

from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
    PartitionToCommit,
    TopicToCommit,
)
from coordinator_logic.offsets.expiry import LATEST_EXPIRY_MS
from coordinator_logic.records import GroupCreated, OffsetsCommitted
from coordinator_logic.states import State
from tests.logic.driver import SESSION_MS, Answer, Driven, Joined, errors_of
from tests.support.parts import classic

ANONYMOUS = Joined("")
TWO_TOPICS = {("b", 1): 5, ("a", 0): 7, ("a", 3): 9}


def the_error(answer: Answer[OffsetCommitResponse]) -> Error:
    """The error of the request, which every partition has, too."""
    assert set(errors_of(answer)) == {answer.error}
    return answer.error


# ---- permission to commit --------------------------------------------------------------------------------------


def test_a_commit_without_a_member_creates_a_simple_group(driven: Driven) -> None:
    assert the_error(driven.commit()) is Error.NONE
    group = classic(driven.group)
    assert (group.state, group.generation, group.protocol_type, group.members) == (State.EMPTY, 0, None, {})
    assert driven.fetch_one().committed_offset == 100
    assert driven.records[0] == GroupCreated()


def test_an_absent_group_ignores_the_member_id(driven: Driven) -> None:
    assert the_error(driven.commit(Joined("anyone", -1, "any-instance"))) is Error.NONE


@pytest.mark.parametrize("version", range(10))
def test_a_generation_of_an_absent_group_is_refused(driven: Driven, version: int) -> None:
    error = Error.ILLEGAL_GENERATION if version < 9 else Error.GROUP_ID_NOT_FOUND
    assert the_error(driven.commit(Joined("m", 0), TWO_TOPICS, version=version)) is error
    assert not driven.exists


def test_the_empty_group_id_is_a_group_id_here() -> None:
    driven = Driven(group_id="")
    assert the_error(driven.commit()) is Error.NONE
    assert driven.fetch_one().committed_offset == 100


def test_an_emptied_group_accepts_commits_without_a_generation_from_any_sender(driven: Driven) -> None:
    driven.empty_group()
    for sender in (ANONYMOUS, Joined("anyone"), Joined("", -1, "instance")):
        assert the_error(driven.commit(sender)) is Error.NONE


def test_an_emptied_group_refuses_commits_of_its_former_members(driven: Driven) -> None:
    driven.empty_group()
    for generation in (0, 2):
        assert the_error(driven.commit(Joined("m", generation))) is Error.UNKNOWN_MEMBER_ID


def test_a_group_with_members_refuses_commits_without_a_member(driven: Driven) -> None:
    (member,) = driven.join_with_members(1)
    assert the_error(driven.commit(ANONYMOUS)) is Error.UNKNOWN_MEMBER_ID
    driven.sync_all([member])
    assert the_error(driven.commit(ANONYMOUS)) is Error.UNKNOWN_MEMBER_ID
    driven.join_new("c2")
    assert the_error(driven.commit(ANONYMOUS)) is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(10))
def test_a_member_of_the_generation_may_commit(driven: Driven, version: int) -> None:
    (member,) = driven.stable_group(1)
    assert the_error(driven.commit(member, TWO_TOPICS, version=version)) is Error.NONE


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"member_id": "unknown-id"}, Error.UNKNOWN_MEMBER_ID),
        ({"member_id": ""}, Error.UNKNOWN_MEMBER_ID),
        ({"generation_id": 2}, Error.ILLEGAL_GENERATION),
        ({"generation_id": -1}, Error.ILLEGAL_GENERATION),
        ({"group_instance_id": "unknown"}, Error.UNKNOWN_MEMBER_ID),
        ({"member_id": "unknown-id", "generation_id": 2}, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_any_other_sender_may_not_commit(driven: Driven, changes: dict[str, Any], error: Error) -> None:
    (member,) = driven.stable_group(1)
    assert the_error(driven.commit(replace(member, **changes), TWO_TOPICS)) is error
    assert driven.fetch() == []


def test_a_replaced_static_member_is_fenced(driven: Driven) -> None:
    (member,) = driven.stable_group(1, static=1)
    driven.join(instance="instance-0")
    assert the_error(driven.commit(member)) is Error.FENCED_INSTANCE_ID


def test_a_static_member_may_send_its_member_id_only(driven: Driven) -> None:
    (member,) = driven.stable_group(1, static=1)
    assert the_error(driven.commit(replace(member, group_instance_id=None))) is Error.NONE


def test_between_join_and_assignment_no_member_may_commit(driven: Driven) -> None:
    (member,) = driven.join_with_members(1)
    assert the_error(driven.commit(member)) is Error.REBALANCE_IN_PROGRESS
    assert the_error(driven.commit(replace(member, generation_id=0))) is Error.ILLEGAL_GENERATION
    assert the_error(driven.commit(replace(member, member_id="unknown-id"))) is Error.UNKNOWN_MEMBER_ID


def test_while_members_rejoin_the_old_generation_may_commit(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.join_new("c2")
    assert the_error(driven.commit(member)) is Error.NONE


# ---- what a commit does ----------------------------------------------------------------------------------------


def test_a_commit_is_a_sign_of_life(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.sleep(SESSION_MS - 1)
    driven.commit(member)
    driven.sleep(SESSION_MS - 1)
    assert driven.state() is State.STABLE
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_a_refused_commit_is_no_sign_of_life(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.sleep(SESSION_MS - 1)
    driven.commit(replace(member, generation_id=7))
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_the_answer_has_the_order_of_the_request(driven: Driven) -> None:
    answer = driven.commit(offsets=TWO_TOPICS)
    assert answer.body.topics == [
        CommittedTopic("b", [CommittedPartition(1, 0)]),
        CommittedTopic("a", [CommittedPartition(0, 0), CommittedPartition(3, 0)]),
    ]


def test_one_request_is_one_record(driven: Driven) -> None:
    driven.commit(offsets=TWO_TOPICS)
    _, committed = driven.records
    assert isinstance(committed, OffsetsCommitted)
    assert [(o.topic, o.partition, o.offset) for o in committed.offsets] == [("b", 1, 5), ("a", 0, 7), ("a", 3, 9)]


def stored(driven: Driven) -> CommittedOffset:
    """The stored offset of the only partition."""
    return driven.group.offsets["topic"][0]


def test_a_commit_stores_epoch_metadata_and_time(driven: Driven) -> None:
    driven.commit(metadata="why", leader_epoch=4)
    assert stored(driven) == CommittedOffset(100, 4, "why", driven.now, None, 2)
    driven.commit()
    assert stored(driven) == CommittedOffset(100, None, "", driven.now, None, 3)


@pytest.mark.parametrize("offset", [0, -1, -5, 2**63 - 1])
def test_any_offset_may_follow_any_other(driven: Driven, offset: int) -> None:
    driven.commit()
    assert the_error(driven.commit(offsets={("topic", 0): offset})) is Error.NONE
    assert stored(driven).offset == offset


@pytest.mark.parametrize("version", range(10))
def test_a_retention_time_is_taken_in_the_versions_that_have_it(driven: Driven, version: int) -> None:
    driven.commit(version=version, retention_ms=1_234)
    assert stored(driven).expire_timestamp == (driven.now + 1_234 if version in (2, 3, 4) else None)


@pytest.mark.parametrize("retention_ms", [2**63 - 1, 2**62, -(2**63)])
def test_a_retention_time_of_any_length_gives_a_time_that_fits_an_int64(driven: Driven, retention_ms: int) -> None:
    driven.commit(version=2, retention_ms=retention_ms)
    assert stored(driven).expire_timestamp == min(driven.now + retention_ms, LATEST_EXPIRY_MS)


@pytest.mark.parametrize("version", range(10))
def test_a_commit_timestamp_is_used_in_the_version_that_has_it(driven: Driven, version: int) -> None:
    driven.commit(version=version, commit_timestamp=42)
    assert stored(driven).commit_timestamp == (42 if version == 1 else driven.now)


def test_too_much_metadata_is_an_error_of_its_partition_only(driven: Driven) -> None:
    partitions = [
        PartitionToCommit(0, 1, committed_metadata="m" * 4096),
        PartitionToCommit(1, 1, committed_metadata="m" * 4097),
        PartitionToCommit(2, 1, committed_metadata="ü" * 4096),
        PartitionToCommit(3, 1, committed_metadata="😀" * 2048),
        PartitionToCommit(4, 1, committed_metadata="😀" * 2048 + "m"),
    ]
    body = OffsetCommitRequest(driven.group_id, [TopicToCommit("topic", partitions)])
    answer: Answer[OffsetCommitResponse] = driven.send("OffsetCommit", body)
    assert errors_of(answer) == [0, 12, 0, 0, 12]
    assert answer.error is Error.NONE
    assert set(driven.group.offsets["topic"]) == {0, 2, 3}


@pytest.mark.parametrize("topics", [[], [TopicToCommit("topic", [])]])
@pytest.mark.parametrize("generation", [-1, 5])
def test_a_commit_without_partitions_is_answered_without_checking_the_group(
    driven: Driven, topics: list[TopicToCommit], generation: int
) -> None:
    body = OffsetCommitRequest(driven.group_id, topics, generation)
    answer: Answer[OffsetCommitResponse] = driven.send("OffsetCommit", body)
    assert (answer.error, answer.body.topics) == (Error.NONE, [])
    assert not driven.exists


def test_a_commit_without_partitions_does_not_restart_the_session(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.sleep(SESSION_MS - 1)
    driven.send("OffsetCommit", OffsetCommitRequest(driven.group_id, [], 1, member.member_id))
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_offsets_outlive_the_members(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.commit(member)
    driven.sleep(SESSION_MS)
    assert driven.state() is State.EMPTY
    assert driven.fetch_one().committed_offset == 100
