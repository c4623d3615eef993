from dataclasses import replace

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.groups.classic.records import AssignmentChanged
from coordinator_logic.messages import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from coordinator_logic.states import State
from tests.logic.driver import (
    REBALANCE_MS,
    SESSION_MS,
    Answer,
    Driven,
    Joined,
    assignment_of,
    listing,
)
from tests.support.parts import classic


def refused(answer: Answer[SyncGroupResponse]) -> Error:
    """The error of a refused SyncGroup, whose response has nothing else."""
    assert answer.body == SyncGroupResponse(error_code=answer.error)
    return answer.error


# ---- refused ---------------------------------------------------------------------------------------------------


def test_an_empty_group_id_is_refused() -> None:
    assert refused(Driven(group_id="").sync(Joined("m", 1))) is Error.INVALID_GROUP_ID


def test_there_is_nothing_to_sync_in_an_absent_or_empty_group(driven: Driven) -> None:
    assert refused(driven.sync(Joined("m", 1))) is Error.UNKNOWN_MEMBER_ID
    assert not driven.exists
    driven.empty_group()
    assert refused(driven.sync(Joined("m", 2))) is Error.UNKNOWN_MEMBER_ID


def test_the_member_id_is_checked_before_the_generation(driven: Driven) -> None:
    driven.stable_group(1)
    assert refused(driven.sync(Joined("unknown-id", 99))) is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("offset", [-1, 1])
def test_another_generation_is_refused_in_every_state(driven: Driven, offset: int) -> None:
    (member,) = driven.join_with_members(1)
    wrong = replace(member, generation_id=member.generation_id + offset)
    assert refused(driven.sync(wrong)) is Error.ILLEGAL_GENERATION
    driven.sync_all([member])
    assert refused(driven.sync(wrong)) is Error.ILLEGAL_GENERATION
    driven.join_new("c2")
    assert driven.state() is State.PREPARING_REBALANCE
    assert refused(driven.sync(wrong)) is Error.ILLEGAL_GENERATION
    assert refused(driven.sync(member)) is Error.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name"),
    [("connect", "range"), ("consumer", "roundrobin"), (None, "range"), ("consumer", None)],
)
def test_another_or_a_missing_protocol_is_refused(
    driven: Driven, protocol_type: str | None, protocol_name: str | None
) -> None:
    (member,) = driven.join_with_members(1)
    answer = driven.sync(member, protocol_type=protocol_type, protocol_name=protocol_name)
    assert refused(answer) is Error.INCONSISTENT_GROUP_PROTOCOL
    assert list(classic(driven.group).pending_syncs) == [member.member_id]


@pytest.mark.parametrize("version", range(5))
def test_before_version_5_the_protocol_need_not_be_named(driven: Driven, version: int) -> None:
    (member,) = driven.join_with_members(1)
    answer = driven.sync(member, {member.member_id: b"a"}, version=version, protocol_type=None, protocol_name=None)
    assert (answer.error, answer.body.assignment) == (Error.NONE, b"a")


def test_the_protocol_is_checked_after_the_generation_and_before_the_state(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.join_new("c2")
    wrong = replace(member, generation_id=7)
    assert driven.sync(wrong, protocol_name="other").error is Error.ILLEGAL_GENERATION
    assert driven.sync(member, protocol_name="other").error is Error.INCONSISTENT_GROUP_PROTOCOL


# ---- accepted --------------------------------------------------------------------------------------------------


def test_followers_wait_for_the_leader_which_brings_every_assignment(driven: Driven) -> None:
    leader, follower, late = driven.join_with_members(3)
    parked = driven.sync(follower)
    assert parked.parked
    answer = driven.sync(leader, {leader.member_id: b"a", follower.member_id: b"b", late.member_id: b"c"})
    assert answer.body == SyncGroupResponse(0, "consumer", "range", b"a")
    assert parked.body == SyncGroupResponse(0, "consumer", "range", b"b")
    assert driven.state() is State.STABLE
    assert driven.sync(late).body == SyncGroupResponse(0, "consumer", "range", b"c")


def test_a_member_that_is_not_listed_has_an_empty_assignment_and_unknown_ones_are_ignored(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2)
    driven.sync(leader, {leader.member_id: b"a", "unknown-id": b"x"})
    assert driven.records[-2] == AssignmentChanged({leader.member_id: b"a", follower.member_id: b""})
    assert driven.sync(follower).body.assignment == b""


def test_of_two_assignments_for_a_member_the_last_counts(driven: Driven) -> None:
    (leader,) = driven.join_with_members(1)
    twice = [MemberAssignment(leader.member_id, b"1"), MemberAssignment(leader.member_id, b"2")]
    body = SyncGroupRequest(driven.group_id, 1, leader.member_id, None, "consumer", "range", twice)
    answer: Answer[SyncGroupResponse] = driven.send("SyncGroup", body)
    assert answer.body.assignment == b"2"


def test_a_leader_without_assignments_still_brings_the_group_to_stable(driven: Driven) -> None:
    (leader,) = driven.join_with_members(1)
    assert driven.sync(leader).body.assignment == b""
    assert driven.state() is State.STABLE
    assert driven.heartbeat(leader).error is Error.NONE


def test_in_a_stable_group_every_member_can_sync_again_and_none_can_assign_again(driven: Driven) -> None:
    leader, follower = driven.stable_group(2)
    for member in (leader, follower):
        assert driven.sync(member, {leader.member_id: b"new"}).body.assignment == assignment_of(member.member_id)


def test_syncing_again_does_not_restart_the_session(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.sleep(SESSION_MS - 1)
    assert driven.sync(member).error is Error.NONE
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_the_answer_restarts_the_session_of_every_waiting_member(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2)
    driven.sleep(SESSION_MS - 1)
    driven.sync(follower)
    driven.sync(leader)
    driven.sleep(SESSION_MS - 1)
    assert len(classic(driven.group).members) == 2
    driven.sleep(1)
    assert classic(driven.group).members == {}


def test_the_older_of_two_parked_syncs_of_a_member_gets_no_answer(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2)
    older, newer = driven.sync(follower), driven.sync(follower)
    driven.sync(leader)
    assert newer.error is Error.NONE
    driven.sleep(10 * SESSION_MS)
    assert older.parked


# ---- members that do not sync within the rebalance timeout -----------------------------------------------------


def test_if_no_member_syncs_the_group_empties_although_all_heartbeat(driven: Driven) -> None:
    members = driven.join_with_members(3)
    driven.sleep_with_heartbeats(REBALANCE_MS - 1, *members)
    assert driven.state() is State.COMPLETING_REBALANCE
    driven.sleep(1)
    assert driven.state() is State.EMPTY
    assert driven.group.generation == 2
    assert {driven.heartbeat(member).error for member in members} == {Error.UNKNOWN_MEMBER_ID}


def test_if_only_the_leader_syncs_the_followers_are_removed(driven: Driven) -> None:
    leader, *followers = driven.join_with_members(3)
    driven.sync(leader)
    driven.sleep_with_heartbeats(REBALANCE_MS, leader, *followers)
    assert driven.state() is State.PREPARING_REBALANCE
    assert driven.heartbeat(leader).error is Error.REBALANCE_IN_PROGRESS
    assert {driven.heartbeat(follower).error for follower in followers} == {Error.UNKNOWN_MEMBER_ID}


def test_if_only_followers_sync_the_leader_is_removed(driven: Driven) -> None:
    leader, *followers = driven.join_with_members(3)
    parked = [driven.sync(follower) for follower in followers]
    driven.sleep_with_heartbeats(REBALANCE_MS, leader)
    assert [refused(answer) for answer in parked] == [Error.REBALANCE_IN_PROGRESS] * 2
    assert driven.state() is State.PREPARING_REBALANCE
    assert driven.heartbeat(leader).error is Error.UNKNOWN_MEMBER_ID
    assert {driven.heartbeat(f).error for f in followers} == {Error.REBALANCE_IN_PROGRESS}
    assert classic(driven.group).leader in {follower.member_id for follower in followers}


def test_if_all_members_sync_the_rebalance_timeout_has_no_effect(driven: Driven) -> None:
    members = driven.stable_group(3)
    driven.sleep_with_heartbeats(3 * REBALANCE_MS, *members)
    assert driven.state() is State.STABLE
    assert driven.group.generation == 1


def test_heartbeats_do_not_extend_the_time_to_sync(driven: Driven) -> None:
    (member,) = driven.join_with_members(1)
    driven.sleep_with_heartbeats(REBALANCE_MS, member)
    assert driven.state() is State.EMPTY


def test_the_time_to_sync_of_an_older_generation_has_no_effect(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2)
    driven.sleep(SESSION_MS - 1)
    driven.rejoin(leader, protocols=listing("range", "sticky"))
    second = driven.rejoin(follower)
    members = [replace(leader, generation_id=2), replace(follower, generation_id=2)]
    assert second.body.generation_id == 2
    driven.sleep_with_heartbeats(REBALANCE_MS - 1, *members)
    assert driven.state() is State.COMPLETING_REBALANCE, "counted from the second generation's start"
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_assignments_that_fit_into_no_record_are_refused_and_all_members_hear_at_once() -> None:
    driven = Driven()
    leader, follower, late = driven.join_with_members(3)
    parked = driven.sync(follower)
    answer = driven.sync(leader, too_large=True)
    assert refused(answer) is Error.UNKNOWN_SERVER_ERROR
    assert refused(parked) is Error.UNKNOWN_SERVER_ERROR
    assert driven.state() is State.PREPARING_REBALANCE
    assert refused(driven.sync(late)) is Error.REBALANCE_IN_PROGRESS


def test_only_the_leaders_assignments_are_refused_for_their_size() -> None:
    driven = Driven()
    leader, follower = driven.join_with_members(2)
    assert driven.sync(follower, too_large=True).parked
    driven.sync_all([leader])
