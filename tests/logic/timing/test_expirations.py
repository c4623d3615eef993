"""Expiry of members: sessions, handed-out ids and first joins."""

from coordinator_logic.errors import Error
from coordinator_logic.records import TimerCause
from coordinator_logic.states import State
from tests.logic.driver import (
    DELAY_MS,
    NEW_MEMBER_MS,
    REBALANCE_MS,
    SESSION_MS,
    Driven,
    joined,
    listing,
)
from tests.support.parts import classic


def test_a_member_is_removed_when_its_session_expires(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.sleep(SESSION_MS - 1)
    assert driven.state() is State.STABLE
    driven.sleep(1)
    assert driven.state() is State.EMPTY
    assert driven.group.generation == 2
    assert driven.heartbeat(member).error is Error.UNKNOWN_MEMBER_ID


def test_the_other_members_rebalance_without_the_expired_one(driven: Driven) -> None:
    expired, member = driven.stable_group(2)
    driven.sleep_with_heartbeats(SESSION_MS, member)
    assert driven.heartbeat(expired).error is Error.UNKNOWN_MEMBER_ID
    assert driven.heartbeat(member).error is Error.REBALANCE_IN_PROGRESS
    answer = driven.rejoin(member)
    assert (joined(answer).generation_id, joined(answer).leads) == (2, True)


def test_the_journal_names_the_timer_that_removed_a_member_and_its_deadline(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    due = driven.now + SESSION_MS
    driven.sleep(3 * SESSION_MS)
    last = driven.journal[-1]
    assert last.cause == TimerCause("heartbeat", member.member_id, due)
    assert last.timestamp == driven.group.part.state_timestamp == due


def test_a_handed_out_id_expires_with_the_session_timeout_of_its_request(driven: Driven) -> None:
    member_id = driven.join(session_ms=1_000).body.member_id
    driven.sleep(999)
    assert list(classic(driven.group).pending_joins) == [member_id]
    driven.sleep(1)
    assert list(classic(driven.group).pending_joins) == []
    assert driven.state() is State.EMPTY
    assert driven.join(member_id).error is Error.UNKNOWN_MEMBER_ID


def test_an_expired_handed_out_id_does_not_rebalance_a_stable_group(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.join(session_ms=1_000)
    driven.sleep(1_000)
    assert driven.heartbeat(member).error is Error.NONE


def test_a_new_member_has_five_minutes_regardless_of_its_session_timeout(driven: Driven) -> None:
    (old,) = driven.stable_group(1, session_ms=600_000, rebalance_ms=600_000)
    newcomer = driven.join_new("c2")
    driven.sleep(NEW_MEMBER_MS - 1)
    assert newcomer.parked
    driven.sleep(1)
    assert newcomer.error is Error.UNKNOWN_MEMBER_ID
    assert newcomer.body.member_id == ""
    assert set(classic(driven.group).members) == {old.member_id}


def test_the_five_minutes_end_when_the_first_join_is_answered(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.sleep_with_heartbeats(NEW_MEMBER_MS, member)
    assert driven.state() is State.STABLE
    driven.sleep(SESSION_MS)
    assert driven.state() is State.EMPTY
    assert driven.group.generation == 2


def test_after_the_first_join_the_session_timeout_counts(driven: Driven) -> None:
    driven.join_with_members(1)
    driven.sleep(SESSION_MS - 1)
    assert driven.state() is State.COMPLETING_REBALANCE
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_a_member_whose_join_is_parked_does_not_expire(driven: Driven) -> None:
    members = driven.stable_group(2, rebalance_ms=60_000)
    parked = driven.rejoin(members[0], rebalance_ms=60_000)
    driven.sleep_with_heartbeats(59_999, members[1])
    assert parked.parked
    driven.sleep(1)
    assert joined(parked).generation_id == 2


def test_its_session_restarts_with_the_answer(driven: Driven) -> None:
    leader, follower = driven.stable_group(2)
    parked = driven.rejoin(leader)
    driven.sleep_with_heartbeats(REBALANCE_MS, follower)
    assert parked.error is Error.NONE
    driven.sleep(SESSION_MS - 1)
    assert leader.member_id in classic(driven.group).members
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_a_member_whose_sync_is_parked_does_not_expire(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2)
    parked = driven.sync(follower)
    driven.sleep_with_heartbeats(REBALANCE_MS - 1, leader)
    assert parked.parked
    assert follower.member_id in classic(driven.group).members


def test_a_leader_that_expires_before_the_assignment_begins_another_rebalance(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2)
    parked = driven.sync(follower)
    driven.sleep(SESSION_MS)
    assert parked.error is Error.REBALANCE_IN_PROGRESS
    assert driven.state() is State.PREPARING_REBALANCE
    assert set(classic(driven.group).members) == {follower.member_id}
    assert driven.heartbeat(leader).error is Error.UNKNOWN_MEMBER_ID
    driven.sleep(SESSION_MS - 1)
    assert driven.heartbeat(follower).error is Error.REBALANCE_IN_PROGRESS, "its session began with the answer"


def test_a_member_that_expires_during_a_rebalance_lets_it_complete(driven: Driven) -> None:
    driven.stable_group(1)
    newcomer = driven.join_new("c2")
    driven.sleep(SESSION_MS - 1)
    assert newcomer.parked
    driven.sleep(1)
    assert (joined(newcomer).generation_id, joined(newcomer).leads) == (2, True)


def test_an_expired_member_can_join_again_as_a_new_one(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.sleep(SESSION_MS)
    answer = driven.join_new()
    driven.sleep(DELAY_MS)
    assert joined(answer).generation_id == 3
    assert joined(answer).member_id != member.member_id


def test_a_session_runs_from_the_last_sign_of_life_only(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.sleep(4_000)
    driven.heartbeat(member)
    driven.sleep(SESSION_MS - 1)
    assert driven.state() is State.STABLE
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_an_immediate_answer_to_a_rejoin_does_not_extend_the_session(driven: Driven) -> None:
    leader, follower = driven.stable_group(2)
    driven.sleep(SESSION_MS - 1)
    driven.heartbeat(leader)
    driven.rejoin(follower)
    driven.sleep(1)
    assert set(classic(driven.group).members) == {leader.member_id}


def test_a_changed_rejoin_has_the_new_session_timeout_once_it_is_answered(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.rejoin(member, session_ms=60_000, rebalance_ms=100_000, protocols=listing("range", "sticky"))
    driven.sleep(59_999)
    assert classic(driven.group).members
    driven.sleep(1)
    assert not classic(driven.group).members
