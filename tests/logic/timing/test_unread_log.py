"""Deadlines while a part of the log is unread: none fires before what was appended before it."""

from coordinator_logic.errors import Error
from coordinator_logic.messages import HeartbeatRequest
from coordinator_logic.states import State
from tests.logic.driver import DELAY_MS, SESSION_MS, Driven


def test_a_member_whose_heartbeat_waits_unread_is_not_expelled(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    joined_at = driven.now
    body = HeartbeatRequest(driven.group_id, member.generation_id, member.member_id)
    unread = driven.request("Heartbeat", body, at=joined_at + SESSION_MS - 1)
    driven.now += 10 * SESSION_MS
    driven.step([], read_until=joined_at + SESSION_MS - 2)
    assert driven.state() is State.STABLE
    driven.step([unread], read_until=joined_at + 2 * SESSION_MS - 2)
    assert driven.answer_to(unread).error is Error.NONE
    assert driven.state() is State.STABLE


def test_the_group_is_called_in_the_next_batch_while_a_due_deadline_waits_for_the_log(driven: Driven) -> None:
    driven.stable_group(1)
    due = driven.now + SESSION_MS
    driven.now += 2 * SESSION_MS
    driven.step([], read_until=due - 1)
    assert driven.wake_at == driven.now
    driven.step([], read_until=due)
    assert driven.state() is State.EMPTY
    assert driven.journal[-1].timestamp == due


def test_a_deadline_that_is_not_due_is_not_waited_for(driven: Driven) -> None:
    driven.stable_group(1)
    due = driven.now + SESSION_MS
    driven.step([], read_until=driven.now - 1)
    assert driven.wake_at == due


def test_the_initial_delay_ends_when_the_joins_during_it_are_read(driven: Driven) -> None:
    first = driven.join(version=3)
    ends_at = driven.now + DELAY_MS
    driven.now += 10 * DELAY_MS
    assert driven.step([], read_until=ends_at - 1) == []
    assert driven.step([], read_until=ends_at) == [first]
