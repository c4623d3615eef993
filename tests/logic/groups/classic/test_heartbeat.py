from dataclasses import replace

from coordinator_logic.errors import Error
from coordinator_logic.states import State
from tests.logic.driver import SESSION_MS, Driven, Joined
from tests.support.parts import classic


def test_an_empty_group_id_is_refused() -> None:
    assert Driven(group_id="").heartbeat(Joined("m", 1)).error is Error.INVALID_GROUP_ID


def test_an_absent_or_empty_group_has_no_members(driven: Driven) -> None:
    assert driven.heartbeat(Joined("m", 1)).error is Error.UNKNOWN_MEMBER_ID
    assert not driven.exists
    driven.empty_group()
    assert driven.heartbeat(Joined("m", 2)).error is Error.UNKNOWN_MEMBER_ID


def test_an_unknown_and_a_handed_out_member_id_are_unknown_members(driven: Driven) -> None:
    driven.stable_group(1)
    pending = driven.join().body.member_id
    assert driven.heartbeat(Joined("unknown-id", 1)).error is Error.UNKNOWN_MEMBER_ID
    assert driven.heartbeat(Joined(pending, 1)).error is Error.UNKNOWN_MEMBER_ID


def test_a_member_hears_that_all_is_well(driven: Driven) -> None:
    (member,) = driven.join_with_members(1)
    assert driven.heartbeat(member).error is Error.NONE
    driven.sync_all([member])
    assert driven.heartbeat(member).error is Error.NONE


def test_a_wrong_generation_is_an_error_during_a_rebalance_too(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    wrong = replace(member, generation_id=2)
    assert driven.heartbeat(wrong).error is Error.ILLEGAL_GENERATION
    driven.join_new("c2")
    assert driven.heartbeat(wrong).error is Error.ILLEGAL_GENERATION
    assert driven.heartbeat(member).error is Error.REBALANCE_IN_PROGRESS


def test_heartbeats_keep_a_member(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    for _ in range(10):
        driven.sleep(SESSION_MS - 1)
        assert driven.heartbeat(member).error is Error.NONE


def test_heartbeats_keep_a_member_during_a_rebalance(driven: Driven) -> None:
    members = driven.stable_group(2, rebalance_ms=60_000)
    driven.rejoin(members[0], rebalance_ms=60_000)
    for _ in range(5):
        driven.sleep(SESSION_MS - 1)
        assert driven.heartbeat(members[1]).error is Error.REBALANCE_IN_PROGRESS
    assert members[1].member_id in classic(driven.group).members


def test_a_refused_heartbeat_does_not_restart_the_session(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.sleep(SESSION_MS - 1)
    driven.heartbeat(replace(member, generation_id=5))
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_heartbeats_leave_no_trace_in_the_journal(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    before = len(driven.journal)
    driven.heartbeat(member)
    assert len(driven.journal) == before
