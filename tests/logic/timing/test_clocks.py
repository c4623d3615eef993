"""Clocks that are wrong: append times that leap ahead or back, and a driver's clock that goes back."""

import msgspec
import pytest

from coordinator_logic import snapshot
from coordinator_logic.errors import Error
from coordinator_logic.messages import HeartbeatRequest
from coordinator_logic.records import MemberRemoved
from coordinator_logic.states import State
from tests.logic.driver import DELAY_MS, SESSION_MS, Driven, joined

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ALLOWANCE_MS = 500
LEAPS_MS = [MINUTE_MS, HOUR_MS, 8 * DAY_MS]
LONGEST_JOIN_MS = 5_000
"""How long a single member may wait for its group: the initial delay of 3 s, and a batch."""


@pytest.fixture
def driven() -> Driven:
    """A group as the job has it: with the allowance and Kafka's expiry of offsets."""
    driven = Driven(expiry_allowance_ms=ALLOWANCE_MS, offsets_retention_check_interval_ms=600_000)
    driven.now = 1_700_000_000_000
    return driven


def removed(driven: Driven) -> list[str]:
    """The members that were removed so far."""
    return [record.member_id for record in driven.records if isinstance(record, MemberRemoved)]


# ---- a broker's clock ahead ------------------------------------------------------------------------------------


@pytest.mark.parametrize("leap_ms", LEAPS_MS)
def test_one_heartbeat_from_a_broker_whose_clock_is_ahead_expels_nobody(driven: Driven, leap_ms: int) -> None:
    members = driven.stable_group(2)
    driven.sleep(1_000)
    driven.broker_ahead_ms = leap_ms
    assert driven.heartbeat(members[0]).error is Error.NONE
    driven.broker_ahead_ms = 0
    driven.sleep_with_heartbeats(4 * SESSION_MS, *members)
    assert removed(driven) == []
    assert [driven.heartbeat(member).error for member in members] == [Error.NONE, Error.NONE]


@pytest.mark.parametrize("leap_ms", LEAPS_MS)
def test_after_a_leap_ahead_and_back_a_group_forms_within_the_initial_delay(driven: Driven, leap_ms: int) -> None:
    driven.commit()
    driven.broker_ahead_ms = leap_ms
    first = driven.join(version=3, instance="first")
    driven.broker_ahead_ms = 0
    second = driven.join(version=3, instance="second")
    driven.sleep(2 * DELAY_MS + ALLOWANCE_MS)
    assert [joined(answer).generation_id for answer in (first, second)] == [1, 1]


@pytest.mark.parametrize("leap_ms", LEAPS_MS)
def test_after_a_leap_ahead_and_back_a_single_member_joins_within_5_s(driven: Driven, leap_ms: int) -> None:
    driven.broker_ahead_ms = leap_ms
    driven.commit()
    driven.broker_ahead_ms = 0
    answer = driven.join(version=3)
    assert driven.sleep(LONGEST_JOIN_MS) == [answer]
    assert joined(answer).generation_id == 1


@pytest.mark.parametrize("leap_ms", LEAPS_MS)
def test_a_leap_ahead_expires_no_offset_and_no_group(driven: Driven, leap_ms: int) -> None:
    driven.commit()
    driven.sleep(1_000)
    driven.broker_ahead_ms = leap_ms
    assert driven.fetch_one().committed_offset == 100
    driven.broker_ahead_ms = 0
    driven.sleep(DAY_MS)
    assert driven.fetch_one().committed_offset == 100


def test_an_offset_that_is_committed_ahead_of_time_expires_in_time(driven: Driven) -> None:
    driven.broker_ahead_ms = 30 * DAY_MS
    driven.commit()
    driven.sleep(7 * DAY_MS + 600_000 + ALLOWANCE_MS)
    assert not driven.exists


def test_a_member_whose_last_heartbeat_leapt_ahead_expires_with_its_session(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.broker_ahead_ms = HOUR_MS
    driven.heartbeat(member)
    driven.sleep(SESSION_MS + ALLOWANCE_MS - 1)
    assert removed(driven) == []
    driven.sleep(ALLOWANCE_MS + 1)
    assert removed(driven) == [member.member_id]


def test_up_to_the_allowance_a_request_may_be_later_than_its_batch(driven: Driven) -> None:
    driven.broker_ahead_ms = ALLOWANCE_MS
    driven.commit()
    assert driven.group.clock == driven.now + ALLOWANCE_MS
    driven.broker_ahead_ms += 1
    driven.commit()
    assert driven.group.clock == driven.now + ALLOWANCE_MS


# ---- a broker's clock that went back ---------------------------------------------------------------------------


@pytest.mark.parametrize("leap_ms", LEAPS_MS)
def test_members_live_through_an_hour_with_a_broker_whose_clock_went_back(driven: Driven, leap_ms: int) -> None:
    members = driven.stable_group(2)
    driven.broker_ahead_ms = -leap_ms
    driven.sleep_with_heartbeats(20 * SESSION_MS, *members)
    driven.broker_ahead_ms = 0
    driven.sleep_with_heartbeats(4 * SESSION_MS, *members)
    assert removed(driven) == []
    assert driven.state() is State.STABLE


def test_a_member_that_stops_while_the_clock_is_back_is_expelled_after_its_session(driven: Driven) -> None:
    stopped, member = driven.stable_group(2)
    driven.broker_ahead_ms = -HOUR_MS
    driven.sleep_with_heartbeats(SESSION_MS + ALLOWANCE_MS, member)
    assert removed(driven) == [stopped.member_id]


def test_requests_from_before_the_group_are_handled_before_any_deadline_of_the_batch(driven: Driven) -> None:
    members = driven.stable_group(2)
    driven.now += 2 * SESSION_MS
    driven.broker_ahead_ms = -HOUR_MS
    bodies = [HeartbeatRequest(driven.group_id, member.generation_id, member.member_id) for member in members]
    late = [driven.request("Heartbeat", body) for body in bodies]
    driven.step(late)
    assert [driven.answer_to(request).error for request in late] == [Error.NONE, Error.NONE]
    assert removed(driven) == []


def test_a_group_forms_within_the_initial_delay_while_the_clock_is_back(driven: Driven) -> None:
    driven.commit()
    driven.broker_ahead_ms = -HOUR_MS
    driven.now += 2 * SESSION_MS
    answer = driven.join(version=3)
    assert driven.sleep(DELAY_MS) == [answer]


# ---- the driver's clock that went back -------------------------------------------------------------------------


@pytest.mark.parametrize("leap_ms", LEAPS_MS)
def test_a_group_forms_within_the_initial_delay_after_the_drivers_clock_went_back(driven: Driven, leap_ms: int) -> None:
    first = driven.join(version=3)
    driven.now -= leap_ms
    second = driven.join(version=3)
    assert driven.wake_at is not None
    assert driven.wake_at <= driven.now + DELAY_MS
    driven.sleep(2 * DELAY_MS)
    assert [joined(answer).generation_id for answer in (first, second)] == [1, 1]


@pytest.mark.parametrize("leap_ms", LEAPS_MS)
def test_members_have_full_sessions_after_the_drivers_clock_went_back(driven: Driven, leap_ms: int) -> None:
    members = driven.stable_group(2)
    driven.sleep(SESSION_MS - 1)
    driven.now -= leap_ms
    driven.step([])
    driven.sleep(SESSION_MS - 1)
    assert [driven.heartbeat(member).error for member in members] == [Error.NONE, Error.NONE]
    driven.sleep(SESSION_MS + 2 * ALLOWANCE_MS)
    assert sorted(removed(driven)) == sorted(member.member_id for member in members)


def test_offsets_keep_their_retention_when_the_drivers_clock_goes_back(driven: Driven) -> None:
    driven.commit()
    due = driven.wake_at
    driven.now -= HOUR_MS
    driven.step([])
    assert driven.wake_at == due
    assert driven.fetch_one().committed_offset == 100


def test_a_group_that_an_older_release_left_ahead_of_time_works_at_once(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    left = driven.group
    left.clock += HOUR_MS
    for key, timer in left.timers.items():
        left.timers[key] = msgspec.structs.replace(timer, armed_at=timer.armed_at + HOUR_MS)
    driven.snapshot = snapshot.encode(left)
    assert driven.heartbeat(member).error is Error.NONE
    driven.sleep(SESSION_MS + 2 * ALLOWANCE_MS)
    assert removed(driven) == [member.member_id]
