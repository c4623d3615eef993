"""Rejoins that begin a rebalance, and rejoins that do not."""

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.groups.classic.records import MemberUpdated
from coordinator_logic.messages import LeavingMember
from coordinator_logic.states import State
from tests.logic.driver import (
    REBALANCE_MS,
    SESSION_MS,
    Driven,
    Joined,
    assignment_of,
    joined,
    listing,
)
from tests.support.parts import classic

# ---- while members rejoin --------------------------------------------------------------------------------------


def test_a_rebalance_ends_when_the_last_member_has_rejoined(driven: Driven) -> None:
    members = driven.stable_group(2)
    newcomer = driven.join_new("c3")
    first = driven.rejoin(members[0])
    assert newcomer.parked
    assert first.parked
    second = driven.rejoin(members[1])
    assert [answer.body.generation_id for answer in (newcomer, first, second)] == [2, 2, 2]
    assert first.body.leader == members[0].member_id, "the leader stays the same"
    assert len(first.body.members) == 3


def test_the_members_hear_of_a_rebalance_by_their_heartbeats(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.join_new("c2")
    assert driven.heartbeat(member).error is Error.REBALANCE_IN_PROGRESS
    assert driven.sync(member).error is Error.REBALANCE_IN_PROGRESS


def test_a_rebalance_waits_for_a_handed_out_id_until_it_joins(driven: Driven) -> None:
    members = driven.stable_group(1)
    second = driven.join_new("c2")
    pending = driven.join(client="c3").body.member_id
    first = driven.rejoin(members[0])
    assert first.parked
    third = driven.join(pending)
    assert {answer.body.generation_id for answer in (first, second, third)} == {2}
    assert len(first.body.members) == 3


def test_a_rebalance_waits_for_a_handed_out_id_no_longer_than_its_session(driven: Driven) -> None:
    members = driven.stable_group(1)
    second = driven.join_new("c2")
    pending = driven.join(client="c3", session_ms=2_500).body.member_id
    first = driven.rejoin(members[0])
    driven.sleep(2_499)
    assert first.parked
    driven.sleep(1)
    assert len(joined_ids := {joined(first).member_id, joined(second).member_id}) == 2
    assert set(classic(driven.group).members) == joined_ids
    assert driven.join(pending).error is Error.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_rejoin_in_time_is_removed_and_the_new_one_leads(driven: Driven) -> None:
    (old,) = driven.stable_group(1)
    newcomer = driven.join_new("c2")
    driven.sleep_with_heartbeats(REBALANCE_MS - 1, old)
    assert newcomer.parked
    driven.sleep(1)
    member = joined(newcomer)
    assert (member.generation_id, member.leads) == (2, True)
    assert driven.heartbeat(old).error is Error.UNKNOWN_MEMBER_ID


def test_the_longest_rebalance_timeout_counts(driven: Driven) -> None:
    first = driven.join(version=3, rebalance_ms=10_000)
    second = driven.join(version=3, rebalance_ms=25_000)
    driven.sleep(6_000)
    members = [joined(first), joined(second)]
    driven.sync_all(members)
    newcomer = driven.join_new("c3", rebalance_ms=1_000)
    driven.sleep_with_heartbeats(24_999, *members)
    assert newcomer.parked
    driven.sleep(1)
    assert newcomer.error is Error.NONE


def test_a_member_that_rejoins_has_its_new_timeouts_and_protocols(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    protocols = listing("roundrobin", "range")
    answer = driven.rejoin(member, session_ms=7_000, rebalance_ms=8_000, protocols=protocols)
    assert joined(answer).generation_id == 2
    assert answer.body.protocol_name == "roundrobin"
    assert MemberUpdated(member.member_id, 8_000, 7_000, protocols) in driven.records
    driven.sleep(6_999)
    assert classic(driven.group).members
    driven.sleep(1)
    assert not classic(driven.group).members


def test_a_handed_out_id_can_join_the_generation_after_the_one_it_was_not_waited_for(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    pending = driven.join(client="c2", session_ms=60_000).body.member_id
    first = driven.rejoin(member)
    assert first.parked
    driven.sleep(REBALANCE_MS)
    assert joined(first).generation_id == 2
    assert driven.join(pending).parked
    assert driven.state() is State.PREPARING_REBALANCE


def test_only_handed_out_ids_left_empty_the_group_without_waiting(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    pending = driven.join(client="c2").body.member_id
    driven.leave(member)
    assert driven.state() is State.EMPTY, "no member is left to wait for"
    assert list(classic(driven.group).pending_joins) == [pending]
    assert driven.join(pending).parked
    assert driven.state() is State.PREPARING_REBALANCE


# ---- after the generation has begun ----------------------------------------------------------------------------


def test_an_unchanged_rejoin_before_the_assignment_is_answered_with_the_generation(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2)
    armed = driven.group.timers
    again = driven.rejoin(follower, session_ms=9_000)
    assert joined(again).generation_id == 1
    assert again.body.members == []
    assert (again.body.protocol_type, again.body.protocol_name) == ("consumer", "range")
    assert [m.member_id for m in driven.rejoin(leader).body.members] == [leader.member_id, follower.member_id]
    assert driven.state() is State.COMPLETING_REBALANCE
    assert driven.group.timers == armed, "the session is not extended"
    assert classic(driven.group).members[follower.member_id].session_timeout_ms == SESSION_MS


def test_a_changed_member_begins_another_rebalance_before_the_assignment(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2)
    parked = driven.sync(follower)
    assert parked.parked
    changed = driven.rejoin(leader, protocols=listing("range", "roundrobin"))
    assert parked.error is Error.REBALANCE_IN_PROGRESS
    assert parked.body.assignment == b""
    assert parked.body.protocol_name is None
    assert changed.parked
    driven.rejoin(follower)
    assert changed.body.generation_id == 2


def test_a_change_of_the_only_member_starts_the_next_generation_at_once(driven: Driven) -> None:
    (member,) = driven.join_with_members(1)
    answer = driven.rejoin(member, protocols=listing("range", "roundrobin"))
    assert joined(answer).generation_id == 2


# ---- in a stable group -----------------------------------------------------------------------------------------


def test_a_leader_that_rejoins_always_rebalances(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    answer = driven.rejoin(member)
    assert joined(answer).generation_id == 2
    assert driven.state() is State.COMPLETING_REBALANCE


def test_an_unchanged_rejoin_of_a_follower_is_answered_with_the_generation(driven: Driven) -> None:
    _, follower = driven.stable_group(2)
    answer = driven.rejoin(follower)
    assert joined(answer).generation_id == 1
    assert answer.body.members == []
    assert not answer.body.skip_assignment
    assert driven.state() is State.STABLE


@pytest.mark.parametrize("protocols", [listing("range", metadata=b"other topics"), listing("range", "roundrobin")])
def test_a_changed_follower_rebalances(driven: Driven, protocols: list[object]) -> None:
    leader, follower = driven.stable_group(2)
    answer = driven.rejoin(follower, protocols=protocols)
    assert answer.parked
    assert driven.state() is State.PREPARING_REBALANCE
    assert driven.heartbeat(leader).error is Error.REBALANCE_IN_PROGRESS


def test_assignments_outlive_a_rebalance_from_stable_until_the_next_sync(driven: Driven) -> None:
    leader, follower = driven.stable_group(2)
    driven.rejoin(leader)
    stored = {m.member_id: m.assignment for m in classic(driven.group).members.values()}
    assert stored == {m.member_id: assignment_of(m.member_id) for m in (leader, follower)}


def test_a_rebalance_out_of_completing_clears_the_assignments(driven: Driven) -> None:
    leader, follower = driven.stable_group(2)
    driven.rejoin(leader)
    driven.rejoin(follower)
    assert driven.state() is State.COMPLETING_REBALANCE
    driven.join_new("c3")
    assert {m.assignment for m in classic(driven.group).members.values()} == {b""}


# ---- leaders ---------------------------------------------------------------------------------------------------


def test_when_the_leader_leaves_another_member_leads(driven: Driven) -> None:
    leader, *followers = driven.stable_group(3)
    driven.leave(leader)
    answers = [driven.rejoin(follower) for follower in followers]
    leaders = {answer.body.leader for answer in answers}
    assert len(leaders) == 1
    assert leaders <= {follower.member_id for follower in followers}
    (leading,) = [answer for answer in answers if joined(answer).leads]
    assert len(leading.body.members) == 2


def test_an_absent_leader_is_replaced_by_a_member_that_has_joined(driven: Driven) -> None:
    leader, follower = driven.stable_group(2, static=1, session_ms=60_000)
    answer = driven.rejoin(follower, protocols=listing("range", "roundrobin"))
    driven.sleep(REBALANCE_MS)
    assert joined(answer).leads
    assert [m.member_id for m in answer.body.members] == [leader.member_id, follower.member_id]


def test_a_new_generation_is_numbered_by_one_more(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    for generation in range(2, 6):
        member = joined(driven.rejoin(member))
        assert member.generation_id == generation
        driven.sync_all([member])


def test_an_emptied_group_starts_a_generation_without_a_protocol(driven: Driven) -> None:
    driven.empty_group()
    group = driven.group
    assert (group.generation, classic(group).protocol_name, classic(group).leader) == (2, None, None)
    assert group.part.protocol_type == "consumer"
    answer = driven.join_new()
    driven.sleep(3_000)
    assert joined(answer).generation_id == 3


def test_a_handed_out_id_that_has_left_is_unknown(driven: Driven) -> None:
    driven.stable_group(1)
    pending = driven.join().body.member_id
    driven.leave(LeavingMember(pending))
    assert driven.join(pending).error is Error.UNKNOWN_MEMBER_ID


def test_a_member_removed_during_a_rebalance_must_join_as_a_new_one(driven: Driven) -> None:
    member = driven.stable_group(1)[0]
    driven.join_new("c2")
    driven.sleep(REBALANCE_MS)
    assert driven.rejoin(member).error is Error.UNKNOWN_MEMBER_ID
    assert driven.join(client="removed").error is Error.MEMBER_ID_REQUIRED
    assert driven.heartbeat(Joined(member.member_id, 2)).error is Error.UNKNOWN_MEMBER_ID
