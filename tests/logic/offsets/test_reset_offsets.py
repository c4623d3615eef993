"""ResetOffsets: an operator sets offsets, also of a group with members, which then have to fetch them."""

import msgspec
import pytest

from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.errors import Error
from coordinator_logic.groups.classic.records import GenerationStarted, StateChanged
from coordinator_logic.messages import (
    PartitionToReset,
    ResetOffsetsRequest,
    ResetPartition,
    ResetTopic,
    TopicToReset,
)
from coordinator_logic.records import GroupCreated, OffsetsCommitted, OffsetsDeleted, RequestCause, TopicPartitions
from coordinator_logic.states import State
from tests.logic.driver import Driven, errors_of, joined
from tests.support.parts import classic

FIRST, SECOND, OTHER = ("topic", 0), ("topic", 1), ("other", 0)


def offsets_of(driven: Driven) -> dict[tuple[str, int], int]:
    """The committed offsets."""
    return {(topic, index): committed.offset for topic, index, committed in driven.group.committed_offsets()}


# ---- a group without members -----------------------------------------------------------------------------------


def test_a_reset_sets_deletes_and_leaves_what_it_does_not_list(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 10, SECOND: 20, OTHER: 30})
    answer = driven.reset_offsets({FIRST: 5, SECOND: -1}, expected={FIRST: 10, SECOND: 20})
    assert (answer.error, answer.body.rejoining) == (Error.NONE, 0)
    assert answer.body.topics == [ResetTopic("topic", [ResetPartition(0, 10), ResetPartition(1, 20)])]
    assert offsets_of(driven) == {FIRST: 5, OTHER: 30}


def test_the_journal_has_who_reset_the_offsets_and_why(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 10, SECOND: 20})
    driven.reset_offsets({FIRST: 5, SECOND: -1}, reason="a bad deployment")
    deleted, committed = driven.journal[-2:]
    assert deleted.record == OffsetsDeleted([TopicPartitions("topic", [1])], "a bad deployment")
    assert isinstance(committed.record, OffsetsCommitted)
    assert committed.record.reason == "a bad deployment"
    assert isinstance(committed.cause, RequestCause)
    assert (committed.cause.api, committed.cause.client_host) == ("ResetOffsets", "/127.0.0.1")


def test_a_commit_is_written_as_by_earlier_releases_and_theirs_are_read() -> None:
    written = b'{"type":"OffsetsCommitted","offsets":[]}'
    assert msgspec.json.encode(OffsetsCommitted([])) == written
    assert msgspec.json.decode(written, type=OffsetsCommitted) == OffsetsCommitted([])


def test_a_reset_restores_epoch_and_metadata_and_counts_the_retention_from_now(driven: Driven) -> None:
    partition = PartitionToReset(0, 5, None, 3, "by hand")
    driven.send("ResetOffsets", ResetOffsetsRequest(driven.group_id, [TopicToReset("topic", [partition])]))
    assert driven.group.offsets["topic"][0] == CommittedOffset(5, 3, "by hand", driven.now, None, 2)


def test_a_reset_creates_a_group_but_not_to_delete_nothing(driven: Driven) -> None:
    assert driven.reset_offsets({FIRST: -1}, expected={}).error is Error.NONE
    assert not driven.exists
    assert driven.reset_offsets({FIRST: 5}, expected={}).error is Error.NONE
    assert driven.records[0] == GroupCreated()
    assert offsets_of(driven) == {FIRST: 5}


def test_a_reset_that_deletes_nothing_is_not_recorded(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    recorded = len(driven.journal)
    assert driven.reset_offsets({FIRST: -1}, force=True).error is Error.NONE
    assert len(driven.journal) == recorded
    assert driven.heartbeat(member).error is Error.NONE


@pytest.mark.parametrize(
    ("partitions", "error"),
    [
        ([PartitionToReset(0, -2)], Error.INVALID_REQUEST),
        ([PartitionToReset(-1, 2)], Error.INVALID_REQUEST),
        ([PartitionToReset(0, 1), PartitionToReset(0, 2)], Error.INVALID_REQUEST),
        ([PartitionToReset(0, 1), PartitionToReset(1, 1, metadata="m" * 4097)], Error.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_an_invalid_partition_refuses_the_whole_reset(
    driven: Driven, partitions: list[PartitionToReset], error: Error
) -> None:
    body = ResetOffsetsRequest(driven.group_id, [TopicToReset("topic", partitions)])
    assert driven.send("ResetOffsets", body).error is error
    assert not driven.exists


def test_a_reset_without_a_group_id_is_refused() -> None:
    driven = Driven(group_id="")
    assert driven.reset_offsets({FIRST: 1}).error is Error.INVALID_GROUP_ID


# ---- compare and set -------------------------------------------------------------------------------------------


def test_a_commit_that_came_in_between_refuses_the_whole_reset_and_is_reported(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 10, SECOND: 20})
    driven.commit(offsets={SECOND: 21})
    answer = driven.reset_offsets({FIRST: 0, SECOND: 0}, expected={FIRST: 10, SECOND: 20})
    assert answer.error is Error.INVALID_UPDATE_VERSION
    partitions = [ResetPartition(0, 10), ResetPartition(1, 21, Error.INVALID_UPDATE_VERSION)]
    assert answer.body.topics == [ResetTopic("topic", partitions)]
    assert offsets_of(driven) == {FIRST: 10, SECOND: 21}


def test_without_an_expectation_the_reset_overwrites_and_reports_what_was_there(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 10})
    answer = driven.reset_offsets({FIRST: 0, SECOND: 0})
    assert answer.body.topics == [ResetTopic("topic", [ResetPartition(0, 10), ResetPartition(1, -1)])]


def test_an_offset_that_is_not_listed_refuses_a_reset_of_all_offsets(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 10, OTHER: 30})
    answer = driven.reset_offsets({FIRST: 0}, expected={FIRST: 10}, lists_all=True)
    assert answer.error is Error.INVALID_UPDATE_VERSION
    missing = ResetTopic("other", [ResetPartition(0, 30, Error.INVALID_UPDATE_VERSION)])
    assert answer.body.topics == [ResetTopic("topic", [ResetPartition(0, 10)]), missing]


def test_an_offset_in_an_open_transaction_refuses_a_reset_that_has_expectations(driven: Driven) -> None:
    driven.commit_in_transaction({FIRST: 50})
    answer = driven.reset_offsets({FIRST: 5}, expected={})
    assert answer.error is Error.UNSTABLE_OFFSET_COMMIT
    assert driven.reset_offsets({FIRST: 5}).error is Error.NONE
    driven.end_transaction(commit=True)
    assert offsets_of(driven) == {FIRST: 5}


# ---- a group with members --------------------------------------------------------------------------------------


def test_a_group_with_members_refuses_a_reset_without_force(driven: Driven) -> None:
    driven.stable_group(2)
    assert driven.reset_offsets({FIRST: 5}).error is Error.NON_EMPTY_GROUP
    assert driven.fetch() == []


def test_a_forced_reset_wins_over_every_commit_of_the_old_generation(driven: Driven) -> None:
    leader, follower = driven.stable_group(2)
    driven.commit(leader, {FIRST: 10})
    answer = driven.reset_offsets({FIRST: 5}, expected={FIRST: 10}, force=True)
    assert (answer.error, answer.body.rejoining) == (Error.NONE, 2)
    assert driven.state() is State.PREPARING_REBALANCE
    for member in (leader, follower):
        assert set(errors_of(driven.commit(member, {FIRST: 99}))) == {Error.ILLEGAL_GENERATION}
        assert set(errors_of(driven.commit_in_transaction({FIRST: 99}, member))) == {Error.ILLEGAL_GENERATION}
        assert driven.heartbeat(member).error is Error.ILLEGAL_GENERATION
        assert driven.sync(member).error is Error.ILLEGAL_GENERATION
    assert offsets_of(driven) == {FIRST: 5}


def test_after_a_forced_reset_the_members_form_a_generation_and_commit_in_it(driven: Driven) -> None:
    leader, follower = driven.stable_group(2)
    driven.reset_offsets({FIRST: 5}, force=True)
    answers = [driven.rejoin(leader), driven.rejoin(follower)]
    members = [joined(answer) for answer in answers]
    assert {member.generation_id for member in members} == {leader.generation_id + 2}
    driven.sync_all(members)
    assert driven.fetch_one().committed_offset == 5
    assert set(errors_of(driven.commit(members[0], {FIRST: 6}))) == {Error.NONE}


def test_a_member_that_has_not_heard_of_a_forced_reset_is_waited_for_and_then_removed(driven: Driven) -> None:
    leader, _ = driven.stable_group(2, session_ms=60_000)
    driven.reset_offsets({FIRST: 5}, force=True)
    driven.rejoin(leader, session_ms=60_000)
    driven.sleep(10_000)
    assert driven.state() is State.COMPLETING_REBALANCE
    assert list(classic(driven.group).members) == [leader.member_id]


def test_a_forced_reset_gives_the_rebalance_the_operators_reason(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.reset_offsets({FIRST: 5}, force=True, reason="replay the night")
    committed, started, changed = driven.records[-3:]
    assert isinstance(committed, OffsetsCommitted)
    assert started == GenerationStarted(member.generation_id + 1, "range")
    assert changed == StateChanged("Stable", "PreparingRebalance", "offsets reset: replay the night")


def test_a_static_member_keeps_its_place(driven: Driven) -> None:
    (member,) = driven.stable_group(1, static=1)
    driven.reset_offsets({FIRST: 5}, force=True)
    assert set(errors_of(driven.commit(member, {FIRST: 9}))) == {Error.ILLEGAL_GENERATION}
    assert joined(driven.rejoin(member)).member_id == member.member_id


def test_an_open_transaction_of_a_member_does_not_win_over_a_later_reset(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.commit_in_transaction({FIRST: 50}, member)
    driven.reset_offsets({FIRST: 5}, force=True)
    driven.end_transaction(commit=True)
    assert offsets_of(driven) == {FIRST: 5}


def test_a_group_in_a_rebalance_asks_to_retry(driven: Driven) -> None:
    (member,) = driven.join_with_members(1)
    assert driven.reset_offsets({FIRST: 5}, force=True).error is Error.REBALANCE_IN_PROGRESS
    driven.sync_all([member])
    driven.join_new("c2")
    assert driven.reset_offsets({FIRST: 5}, force=True).error is Error.REBALANCE_IN_PROGRESS
    driven.rejoin(member)
    assert driven.fetch() == []


def test_a_stable_group_with_a_member_that_has_yet_to_sync_asks_to_retry(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2)
    driven.sync(leader, {member.member_id: b"assignment" for member in (leader, follower)})
    assert driven.state() is State.STABLE
    assert driven.reset_offsets({FIRST: 5}, force=True).error is Error.REBALANCE_IN_PROGRESS
    driven.sync(follower)
    assert driven.reset_offsets({FIRST: 5}, force=True).error is Error.NONE


def test_handed_out_member_ids_do_not_make_a_group_live(driven: Driven) -> None:
    required = driven.join(client="late")
    assert driven.reset_offsets({FIRST: 5}).error is Error.NONE
    assert driven.join(required.body.member_id, client="late").parked
    assert driven.fetch_one().committed_offset == 5
