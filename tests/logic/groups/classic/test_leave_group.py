from dataclasses import replace

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.group.timer import EXPIRY
from coordinator_logic.groups.classic.records import GenerationStarted
from coordinator_logic.messages import LeaveGroupResponse, LeavingMember, LeftMember
from coordinator_logic.records import MemberRemoved
from coordinator_logic.states import State
from tests.logic.driver import Driven, Joined, joined, leave_errors
from tests.support.parts import classic


@pytest.mark.parametrize("version", range(6))
def test_an_empty_group_id_is_refused_as_a_whole(version: int) -> None:
    answer = Driven(group_id="").leave(Joined("m"), version=version)
    assert answer.body == LeaveGroupResponse(Error.INVALID_GROUP_ID, [])


def test_leaving_an_absent_group_is_an_unknown_member(driven: Driven) -> None:
    answer = driven.leave(Joined("m"), LeavingMember("", "i"))
    assert answer.body == LeaveGroupResponse(0, [LeftMember("m", None, 25), LeftMember("", "i", 25)])
    assert driven.leave(Joined("m"), version=2).body == LeaveGroupResponse(Error.UNKNOWN_MEMBER_ID, [])
    assert not driven.exists


def test_an_unknown_member_cannot_leave(driven: Driven) -> None:
    driven.stable_group(1)
    before = len(driven.journal)
    assert driven.leave(Joined("unknown-id")).body == LeaveGroupResponse(0, [LeftMember("unknown-id", None, 25)])
    assert driven.leave(LeavingMember("")).body == LeaveGroupResponse(0, [LeftMember("", None, 25)])
    assert driven.leave(Joined("unknown-id"), version=1).error is Error.UNKNOWN_MEMBER_ID
    assert len(driven.journal) == before
    assert driven.state() is State.STABLE


@pytest.mark.parametrize("version", range(6))
def test_the_last_member_leaves_an_empty_group(driven: Driven, version: int) -> None:
    (member,) = driven.stable_group(1)
    answer = driven.leave(member, version=version)
    entries = [LeftMember(member.member_id, None, 0)] if version >= 3 else []
    assert answer.body == LeaveGroupResponse(0, entries)
    assert driven.state() is State.EMPTY
    assert GenerationStarted(2, None) in driven.records


def test_the_others_rebalance(driven: Driven) -> None:
    leaver, member = driven.stable_group(2)
    driven.leave(leaver)
    assert driven.heartbeat(member).error is Error.REBALANCE_IN_PROGRESS
    assert driven.heartbeat(leaver).error is Error.UNKNOWN_MEMBER_ID
    assert joined(driven.rejoin(member)).generation_id == 2


def test_a_static_member_can_be_removed_by_its_instance_id_alone(driven: Driven) -> None:
    (member,) = driven.stable_group(1, static=1)
    answer = driven.leave(LeavingMember("", "instance-0"))
    assert answer.body == LeaveGroupResponse(0, [LeftMember("", "instance-0", 0)])
    assert driven.state() is State.EMPTY
    assert driven.heartbeat(member).error is Error.UNKNOWN_MEMBER_ID


def test_a_static_member_can_leave_by_its_member_id_alone(driven: Driven) -> None:
    (member,) = driven.stable_group(1, static=1)
    assert leave_errors(driven.leave(LeavingMember(member.member_id))) == [Error.NONE]
    assert driven.state() is State.EMPTY


def test_an_unknown_instance_id_does_not_affect_other_entries(driven: Driven) -> None:
    leader, _ = driven.stable_group(2, static=2)
    answer = driven.leave(LeavingMember("", "unknown"), LeavingMember("", "instance-1"))
    assert answer.body.members == [LeftMember("", "unknown", 25), LeftMember("", "instance-1", 0)]
    assert set(classic(driven.group).members) == {leader.member_id}


def test_a_batch_leaves_together_and_rebalances_once(driven: Driven) -> None:
    *leavers, _ = driven.stable_group(3, static=3)
    before = len(driven.journal)
    assert leave_errors(driven.leave(*leavers)) == [Error.NONE, Error.NONE]
    transitions = [entry.record for entry in driven.journal[before:] if "StateChanged" in type(entry.record).__name__]
    assert len(transitions) == 1
    assert driven.state() is State.PREPARING_REBALANCE


def test_a_fenced_entry_does_not_keep_the_others(driven: Driven) -> None:
    first, second = driven.stable_group(2, static=2)
    mixed = replace(first, group_instance_id=second.group_instance_id)
    answer = driven.leave(mixed, first, replace(second, member_id="made-up"))
    assert leave_errors(answer) == [Error.FENCED_INSTANCE_ID, Error.NONE, Error.FENCED_INSTANCE_ID]
    assert answer.error is Error.NONE
    assert set(classic(driven.group).members) == {second.member_id}


def test_entries_are_handled_in_order(driven: Driven) -> None:
    leaver, _ = driven.stable_group(2, static=1)
    answer = driven.leave(leaver, leaver, LeavingMember("", "instance-0"))
    assert leave_errors(answer) == [Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.UNKNOWN_MEMBER_ID]


def test_a_handed_out_id_can_leave_with_any_instance_id(driven: Driven) -> None:
    driven.empty_group()
    pending = driven.join().body.member_id
    answer = driven.leave(LeavingMember("", "unknown"), LeavingMember(pending, "unknown"), Joined("unknown-id"))
    assert leave_errors(answer) == [Error.UNKNOWN_MEMBER_ID, Error.NONE, Error.UNKNOWN_MEMBER_ID]
    assert list(classic(driven.group).pending_joins) == []
    assert [timer.kind for timer in driven.group.timers.values()] == [EXPIRY]
    assert driven.state() is State.EMPTY


def test_a_handed_out_id_that_leaves_rebalances_a_stable_group_all_the_same(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    pending = driven.join().body.member_id
    driven.leave(LeavingMember(pending))
    assert driven.heartbeat(member).error is Error.REBALANCE_IN_PROGRESS


def test_a_handed_out_id_that_leaves_lets_the_join_complete(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    pending = driven.join().body.member_id
    answer = driven.rejoin(member)
    assert answer.parked
    driven.leave(LeavingMember(pending))
    assert joined(answer).generation_id == 2


def test_members_and_handed_out_ids_can_leave_in_one_batch_while_members_rejoin(driven: Driven) -> None:
    members = driven.stable_group(2)
    pending = driven.join().body.member_id
    parked = [driven.rejoin(member) for member in members]
    answer = driven.leave(*members, Joined(pending), Joined("unknown-id"))
    assert leave_errors(answer) == [Error.NONE, Error.NONE, Error.NONE, Error.UNKNOWN_MEMBER_ID]
    assert {answer.error for answer in parked} == {Error.UNKNOWN_MEMBER_ID}
    assert (driven.state(), driven.group.generation) == (State.EMPTY, 2)
    assert list(classic(driven.group).pending_joins) == []


def test_the_parked_join_of_a_leaving_member_is_answered_unknown_member(driven: Driven) -> None:
    leader, follower = driven.stable_group(2)
    parked = driven.rejoin(leader)
    driven.leave(leader)
    assert (parked.error, parked.body.member_id) == (Error.UNKNOWN_MEMBER_ID, "")
    assert classic(driven.group).leader == follower.member_id


def test_the_parked_sync_of_a_leaving_member_gets_no_answer(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2)
    parked = driven.sync(follower)
    driven.leave(follower)
    driven.sleep_with_heartbeats(100_000, leader)
    assert parked.parked


def test_a_leave_before_the_assignment_begins_another_rebalance(driven: Driven) -> None:
    leader, follower, leaver = driven.join_with_members(3)
    parked = driven.sync(follower)
    driven.leave(leaver)
    assert parked.error is Error.REBALANCE_IN_PROGRESS
    assert driven.state() is State.PREPARING_REBALANCE
    assert driven.heartbeat(leader).error is Error.REBALANCE_IN_PROGRESS


def test_a_leave_can_complete_the_join_of_the_others(driven: Driven) -> None:
    leader, follower = driven.stable_group(2)
    answer = driven.rejoin(leader)
    driven.leave(follower)
    assert joined(answer).generation_id == 2


def test_the_reason_is_kept_in_the_journal(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.leave(LeavingMember(member.member_id, None, "the consumer is being closed"))
    removed = next(record for record in driven.records if isinstance(record, MemberRemoved))
    assert removed.reason == "left: the consumer is being closed"


def test_an_empty_batch_changes_nothing(driven: Driven) -> None:
    driven.stable_group(1)
    assert driven.leave().body == LeaveGroupResponse()
    assert driven.state() is State.STABLE
