"""Time is data: event times, deadlines, the allowance, restarts, and when the group is to be woken."""

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.events import Place, Request
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.messages import HeartbeatRequest, JoinGroupRequest
from coordinator_logic.records import MemberRemoved
from coordinator_logic.states import State
from tests.logic.driver import (
    DELAY_MS,
    NEW_MEMBER_MS,
    REBALANCE_MS,
    SESSION_MS,
    Driven,
    Joined,
    joined,
    listing,
)
from tests.support.parts import classic

ALLOWANCE_MS = 500


def heartbeat_at(driven: Driven, member: Joined, at: int) -> Request:
    """A heartbeat that the broker appends at a time, for a batch."""
    body = HeartbeatRequest(driven.group_id, member.generation_id, member.member_id)
    return driven.request("Heartbeat", body, at=at)


@pytest.fixture
def allowing() -> Driven:
    """A group with an allowance."""
    return Driven(expiry_allowance_ms=ALLOWANCE_MS)


# ---- deadlines and events --------------------------------------------------------------------------------------


def test_a_deadline_fires_before_an_event_of_the_same_time(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    request = heartbeat_at(driven, member, driven.now + SESSION_MS)
    driven.step([request], batch_time=driven.now + SESSION_MS)
    assert driven.answer_to(request).error is Error.UNKNOWN_MEMBER_ID


def test_an_event_before_the_deadline_counts_in_a_late_batch_too(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    request = heartbeat_at(driven, member, driven.now + SESSION_MS - 1)
    driven.step([request], batch_time=driven.now + 2 * SESSION_MS - 2)
    assert driven.answer_to(request).error is Error.NONE
    assert driven.state() is State.STABLE


def test_events_of_one_batch_have_their_own_times(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    times = [driven.now + 4_000, driven.now + 8_000, driven.now + 14_000]
    requests = [heartbeat_at(driven, member, at) for at in times]
    driven.step(requests, batch_time=times[-1])
    assert [driven.answer_to(request).error for request in requests] == [0, 0, 25]
    assert driven.journal[-1].timestamp == times[1] + SESSION_MS


def test_what_follows_from_a_deadline_happens_at_the_deadlines_time(driven: Driven) -> None:
    answer = driven.join(version=3)
    start = driven.now
    assert driven.sleep(1_000_000) == [answer], "one batch, long after"
    times = [
        (entry.timestamp - start, entry.record.to_state)
        for entry in driven.journal
        if isinstance(entry.record, StateChanged)
    ]
    ready, gone = DELAY_MS, DELAY_MS + SESSION_MS
    assert times == [
        (0, "PreparingRebalance"),
        (ready, "CompletingRebalance"),
        (gone, "PreparingRebalance"),
        (gone, "Empty"),
    ]


def test_deadlines_of_the_same_time_fire_in_the_order_in_which_they_were_armed(driven: Driven) -> None:
    first, second, third = driven.stable_group(3)
    for member in (third, first, second):
        driven.heartbeat(member)
    driven.sleep(SESSION_MS)
    removed = [record.member_id for record in driven.records if isinstance(record, MemberRemoved)]
    assert removed == [third.member_id, first.member_id, second.member_id]


def test_a_later_event_with_an_earlier_time_does_not_set_the_clock_back(driven: Driven) -> None:
    driven.commit(offsets={("topic", 0): 1})
    driven.broker_ahead_ms = -10
    driven.commit(offsets={("topic", 1): 2})
    times = [entry.commit_timestamp for _, _, entry in driven.group.committed_offsets()]
    assert times == [1_000_000, 1_000_000]
    assert driven.group.clock == 1_000_000


def test_an_event_older_than_a_deadline_that_has_fired_is_taken_after_it(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    due = driven.now + SESSION_MS
    driven.sleep(SESSION_MS)
    late = heartbeat_at(driven, member, due - 1)
    driven.step([late])
    assert driven.answer_to(late).error is Error.UNKNOWN_MEMBER_ID
    assert driven.group.clock == due


# ---- the allowance ---------------------------------------------------------------------------------------------


def test_without_an_event_an_expelling_deadline_waits_for_the_allowance(allowing: Driven) -> None:
    (member,) = allowing.stable_group(1)
    due = allowing.now + SESSION_MS
    allowing.sleep(SESSION_MS + ALLOWANCE_MS - 1)
    assert allowing.state() is State.STABLE
    allowing.sleep(1)
    assert allowing.state() is State.EMPTY
    assert allowing.journal[-1].timestamp == due, "it fires with its own time"
    assert member.member_id not in classic(allowing.group).members


def test_a_heartbeat_that_was_appended_in_time_counts_during_the_allowance(allowing: Driven) -> None:
    (member,) = allowing.stable_group(1)
    due = allowing.now + SESSION_MS
    allowing.step([], batch_time=due + ALLOWANCE_MS - 1)
    request = heartbeat_at(allowing, member, due - 1)
    allowing.step([request], batch_time=due + ALLOWANCE_MS)
    assert allowing.answer_to(request).error is Error.NONE
    assert allowing.state() is State.STABLE


def test_an_event_after_the_deadline_does_not_wait_for_the_allowance(allowing: Driven) -> None:
    (member,) = allowing.stable_group(1)
    request = heartbeat_at(allowing, member, allowing.now + SESSION_MS)
    allowing.step([request], batch_time=allowing.now + SESSION_MS)
    assert allowing.answer_to(request).error is Error.UNKNOWN_MEMBER_ID


def test_the_initial_delay_expels_no_member_and_has_no_allowance(allowing: Driven) -> None:
    answer = allowing.join(version=3)
    assert allowing.wake_at == allowing.now + DELAY_MS
    assert allowing.sleep(DELAY_MS) == [answer]


def test_a_deadline_does_not_overtake_an_earlier_one_that_waits(allowing: Driven) -> None:
    pending = allowing.join(session_ms=DELAY_MS - 100).body.member_id
    answer = allowing.join(version=3)
    assert allowing.wake_at == allowing.now + DELAY_MS - 100 + ALLOWANCE_MS
    allowing.sleep(DELAY_MS)
    assert answer.parked
    assert list(classic(allowing.group).pending_joins) == [pending]
    allowing.sleep(ALLOWANCE_MS - 101)
    assert answer.parked
    assert allowing.sleep(1) == [answer]
    assert allowing.group.part.state_timestamp == 1_000_000 + DELAY_MS - 100


@pytest.mark.parametrize("expelling", ["heartbeat", "pending", "join", "sync"])
def test_every_expelling_deadline_has_the_allowance(allowing: Driven, expelling: str) -> None:
    if expelling == "pending":
        allowing.join(session_ms=700)
        due = 700
    elif expelling == "heartbeat":
        allowing.stable_group(1)
        due = SESSION_MS
    else:
        members = allowing.join_with_members(1, session_ms=100_000)
        due = REBALANCE_MS
        if expelling == "join":
            allowing.sync_all(members)
            allowing.join(version=3)
    assert allowing.wake_at == allowing.now + due + ALLOWANCE_MS


# ---- waking up -------------------------------------------------------------------------------------------------


def test_a_group_without_timers_is_never_woken() -> None:
    driven = Driven(offsets_retention_minutes=2**47)
    driven.commit()
    assert driven.wake_at is None


def test_a_group_is_woken_for_its_earliest_deadline(driven: Driven) -> None:
    first, second = driven.stable_group(2)
    driven.sleep(1_000)
    driven.heartbeat(first)
    assert driven.wake_at == driven.now + SESSION_MS - 1_000
    driven.heartbeat(second)
    assert driven.wake_at == driven.now + SESSION_MS


# ---- restarts --------------------------------------------------------------------------------------------------


def test_a_restart_gives_every_member_a_full_session(driven: Driven) -> None:
    members = driven.stable_group(2)
    driven.now += 100 * SESSION_MS
    driven.restart()
    driven.step([])
    assert driven.state() is State.STABLE
    assert driven.wake_at == driven.now + SESSION_MS
    driven.sleep(SESSION_MS - 1)
    assert {driven.heartbeat(member).error for member in members} == {Error.NONE}
    driven.sleep(SESSION_MS)
    assert driven.state() is State.EMPTY


def test_a_session_that_began_after_the_restart_counts_from_its_own_beginning(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.restart()
    driven.sleep(1_000)
    driven.heartbeat(member)
    assert driven.wake_at == driven.now + SESSION_MS


def test_requests_sent_while_the_coordinator_was_down_come_before_its_deadlines(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    sent_at = driven.now + 30_000
    request = heartbeat_at(driven, member, sent_at)
    driven.now += 60_000
    driven.restart()
    driven.step([request])
    assert driven.answer_to(request).error is Error.NONE
    assert driven.wake_at == driven.now + SESSION_MS


def test_a_restart_restarts_the_time_to_sync(driven: Driven) -> None:
    members = driven.join_with_members(2, session_ms=100_000)
    driven.now += 50_000
    driven.restart()
    driven.sleep(REBALANCE_MS - 1)
    assert driven.state() is State.COMPLETING_REBALANCE
    driven.sync_all(members)


def test_a_restart_restarts_the_time_to_rejoin(driven: Driven) -> None:
    leader, follower = driven.stable_group(2, session_ms=100_000)
    answer = driven.rejoin(leader)
    driven.now += 50_000
    driven.restart()
    driven.sleep(REBALANCE_MS - 1)
    assert answer.parked
    assert joined(driven.rejoin(follower)).generation_id == 2


def test_a_restart_restarts_the_time_of_handed_out_ids_and_new_members(driven: Driven) -> None:
    driven.stable_group(1, session_ms=600_000, rebalance_ms=600_000)
    newcomer = driven.join(version=3)
    pending = driven.join(session_ms=1_000).body.member_id
    driven.now += NEW_MEMBER_MS - 1
    driven.restart()
    driven.sleep(999)
    assert list(classic(driven.group).pending_joins) == [pending]
    driven.sleep(1)
    assert list(classic(driven.group).pending_joins) == []
    driven.sleep(NEW_MEMBER_MS - 1_001)
    assert newcomer.parked


def test_a_restart_does_not_extend_the_initial_delay(driven: Driven) -> None:
    answer = driven.join(version=3)
    driven.sleep(DELAY_MS - 1)
    driven.restart()
    assert driven.sleep(1) == [answer]


def test_generations_and_assignments_outlive_a_restart(driven: Driven) -> None:
    members = driven.stable_group(3)
    driven.now += 1_000_000
    driven.restart()
    for member in members:
        assert driven.heartbeat(member).error is Error.NONE
        assert driven.sync(member).body.assignment
    assert driven.group.generation == 1


# ---- batches that run again ------------------------------------------------------------------------------------


def test_member_ids_of_one_batch_differ_and_are_the_same_when_it_runs_again(driven: Driven) -> None:
    body = JoinGroupRequest(driven.group_id, SESSION_MS, "consumer", listing("range"), REBALANCE_MS)
    requests = [driven.request("JoinGroup", body) for _ in range(5)]
    assert len({(request.place.offset, request.place.timestamp) for request in requests}) == 5
    driven.step(requests)  # which runs twice and compares
    ids = classic(driven.group).pending_joins
    assert len(set(ids)) == 5


def test_places_that_differ_only_in_the_partition_give_different_ids(driven: Driven) -> None:
    body = JoinGroupRequest(driven.group_id, SESSION_MS, "consumer", listing("range"), REBALANCE_MS)
    one, two = (driven.request("JoinGroup", body) for _ in range(2))
    elsewhere = Request(
        Place(one.place.timestamp, 1, one.place.offset), two.address, two.client_id, two.client_host, body
    )
    driven.step([one, elsewhere])
    assert len(set(classic(driven.group).pending_joins)) == 2
