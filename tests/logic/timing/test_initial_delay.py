"""The initial delay of a group's first rebalance (KIP-134): how long it lasts, and what ends it earlier."""

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import LeavingMember
from coordinator_logic.states import State
from tests.logic.driver import DELAY_MS, NEW_MEMBER_MS, SESSION_MS, Driven, Joined, joined
from tests.support.parts import classic


def test_a_new_member_during_the_delay_extends_it(driven: Driven) -> None:
    first = driven.join(version=3, rebalance_ms=3 * DELAY_MS)
    driven.sleep(DELAY_MS - 1)
    second = driven.join(version=3, rebalance_ms=3 * DELAY_MS)
    assert driven.sleep(DELAY_MS) == []
    assert driven.sleep(1) == [first, second]
    assert driven.now == 1_000_000 + 2 * DELAY_MS


@pytest.mark.parametrize("rebalance_ms", [0, DELAY_MS - 1, DELAY_MS])
def test_a_rebalance_timeout_that_is_no_longer_than_the_delay_allows_no_extension(
    driven: Driven, rebalance_ms: int
) -> None:
    answers = [driven.join(version=3, rebalance_ms=rebalance_ms) for _ in range(2)]
    assert driven.sleep(DELAY_MS) == answers


@pytest.mark.parametrize("rebalance_ms", [2 * DELAY_MS, 3 * DELAY_MS])
def test_the_first_member_alone_does_not_extend_the_delay(driven: Driven, rebalance_ms: int) -> None:
    first = driven.join(version=3, rebalance_ms=rebalance_ms)
    assert driven.sleep(DELAY_MS) == [first]


def test_the_delay_never_exceeds_the_rebalance_timeout(driven: Driven) -> None:
    answers = [driven.join(version=3, rebalance_ms=2 * DELAY_MS) for _ in range(2)]
    driven.sleep(DELAY_MS + 1)
    answers.append(driven.join(version=3, rebalance_ms=2 * DELAY_MS))
    assert driven.sleep(DELAY_MS - 2) == []
    assert driven.sleep(1) == answers
    assert driven.now == 1_000_000 + 2 * DELAY_MS


def test_the_last_extension_is_cut_to_what_remains(driven: Driven) -> None:
    answers = [driven.join(version=3, rebalance_ms=DELAY_MS + 1_000) for _ in range(2)]
    driven.sleep(DELAY_MS)
    assert driven.sleep(999) == []
    assert driven.sleep(1) == answers


def test_what_remains_shrinks_by_the_delay_that_has_passed(driven: Driven) -> None:
    answers = [driven.join(version=3, rebalance_ms=10_000) for _ in range(2)]  # 3000, and 7000 remain
    for left in (4_000, 1_000):
        driven.sleep(DELAY_MS)
        assert driven.group.timers["join"].remaining_ms == left
        answers.append(driven.join(version=3, rebalance_ms=10_000))
    driven.sleep(DELAY_MS)
    assert driven.group.timers["join"].timeout_ms == 1_000
    assert driven.sleep(1_000) == answers


def test_a_new_member_that_could_not_extend_one_delay_extends_the_next(driven: Driven) -> None:
    answers = [driven.join(version=3, rebalance_ms=2 * DELAY_MS) for _ in range(2)]
    driven.sleep(DELAY_MS + 1)
    answers.append(driven.join(version=3, rebalance_ms=2 * DELAY_MS))
    driven.sleep(DELAY_MS)
    driven.leave(*[joined(answer) for answer in answers])
    assert driven.state() is State.EMPTY
    assert classic(driven.group).new_member_added
    again = driven.join(version=3, rebalance_ms=2 * DELAY_MS)
    assert driven.sleep(DELAY_MS) == [], "extended, although no other member joined"
    assert driven.sleep(DELAY_MS) == [again]


def test_new_members_of_a_later_rebalance_extend_no_delay(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    newcomers = [driven.join(version=3) for _ in range(2)]
    members = [joined(driven.rejoin(member)), *map(joined, newcomers)]
    driven.leave(*members)
    assert driven.state() is State.EMPTY
    again = driven.join(version=3)
    assert driven.sleep(DELAY_MS) == [again]


def test_without_a_delay_the_first_member_has_its_generation_at_once() -> None:
    driven = Driven(group_initial_rebalance_delay_ms=0)
    assert driven.join(version=3).error is Error.NONE
    assert driven.state() is State.COMPLETING_REBALANCE


def test_a_rejoin_during_the_delay_does_not_end_it(driven: Driven) -> None:
    driven.join_new()
    (member_id,) = classic(driven.group).members
    driven.sleep(1_000)
    again = driven.join(member_id)
    assert driven.sleep(1_999) == []
    assert driven.sleep(1) == [again]


def test_a_heartbeat_during_the_delay_is_answered_rebalance_in_progress(driven: Driven) -> None:
    member = Joined(driven.join(version=4).body.member_id, generation_id=0)
    driven.rejoin(member)
    assert driven.heartbeat(member).error is Error.REBALANCE_IN_PROGRESS
    assert driven.sync(member).error is Error.REBALANCE_IN_PROGRESS


def test_a_new_member_that_heartbeats_while_it_waits_swaps_its_five_minutes_for_a_session() -> None:
    driven = Driven(group_initial_rebalance_delay_ms=60_000)
    member = Joined(driven.join(version=4).body.member_id, generation_id=0)
    answer = driven.rejoin(member)
    driven.heartbeat(member)
    assert driven.sleep(SESSION_MS - 1) == []
    assert driven.sleep(1) == [answer]
    assert answer.error is Error.UNKNOWN_MEMBER_ID


def test_a_leave_during_the_delay_does_not_end_it(driven: Driven) -> None:
    first, second = driven.join(instance="a"), driven.join(instance="b")
    one, other = classic(driven.group).members.values()

    driven.leave(LeavingMember(one.member_id))
    assert first.error is Error.UNKNOWN_MEMBER_ID
    assert first.body.member_id == ""
    assert classic(driven.group).leader == other.member_id
    assert driven.sleep(DELAY_MS - 1) == []
    driven.sleep(DELAY_MS + 1)
    assert joined(second).leads


def test_the_last_leave_during_the_delay_leaves_it_to_the_delay_to_empty_the_group(driven: Driven) -> None:

    driven.join(instance="a")
    driven.leave(LeavingMember("", "a"))
    assert driven.state() is State.PREPARING_REBALANCE
    assert classic(driven.group).members == {}
    driven.sleep(DELAY_MS)
    assert driven.state() is State.EMPTY
    assert driven.group.generation == 1


def test_an_expired_handed_out_id_ends_the_delay_once_all_others_have_joined(driven: Driven) -> None:
    driven.join(session_ms=1_000)
    second = driven.join(version=3)
    driven.sleep(999)
    assert second.parked
    driven.sleep(1)
    assert joined(second).generation_id == 1


def test_a_new_members_five_minutes_can_end_before_the_delay_does() -> None:
    driven = Driven(group_initial_rebalance_delay_ms=600_000)
    answer = driven.join(version=3)
    assert driven.sleep(NEW_MEMBER_MS - 1) == []
    assert driven.sleep(1) == [answer]
    assert answer.error is Error.UNKNOWN_MEMBER_ID
    assert answer.body.member_id == ""
    assert driven.state() is State.EMPTY
    assert driven.group.generation == 1
    driven.sleep(600_000)
    assert driven.group.generation == 1, "the delay's end no longer means anything"


def test_a_group_that_was_deleted_during_the_wait_is_not_there_when_it_ends(driven: Driven) -> None:
    driven.join()
    assert driven.delete() is Error.NONE
    assert driven.sleep(NEW_MEMBER_MS) == []
    assert not driven.exists
