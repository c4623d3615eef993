"""Static members (KIP-345): they keep their place while absent, and return to it with a new member id."""

from dataclasses import replace

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.groups.classic.records import GenerationStarted, LeaderElected
from coordinator_logic.messages import JoinGroupResponse, SyncGroupResponse
from coordinator_logic.records import StaticMemberReplaced
from coordinator_logic.states import State
from tests.logic.driver import (
    DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Driven,
    Joined,
    assignment_of,
    joined,
    listing,
)
from tests.support.parts import classic


def fenced(member: Joined) -> JoinGroupResponse:
    """The response to a JoinGroup whose instance id now belongs to another member id."""
    return JoinGroupResponse(error_code=Error.FENCED_INSTANCE_ID, member_id=member.member_id)


# ---- fencing ---------------------------------------------------------------------------------------------------


def test_an_instance_id_with_a_made_up_member_id_is_fenced(driven: Driven) -> None:
    (member,) = driven.stable_group(1, static=1)
    impostor = replace(member, member_id="made-up")
    assert driven.rejoin(impostor).body == fenced(impostor)
    assert driven.sync(impostor).body == SyncGroupResponse(error_code=Error.FENCED_INSTANCE_ID)
    assert driven.heartbeat(impostor).error is Error.FENCED_INSTANCE_ID
    assert driven.heartbeat(member).error is Error.NONE


@pytest.mark.parametrize("mismatch", [(0, 1), (1, 0)])
def test_a_member_id_with_another_members_instance_id_is_fenced(driven: Driven, mismatch: tuple[int, int]) -> None:
    members = driven.stable_group(2, static=2)
    first, second = mismatch
    mixed = replace(members[first], group_instance_id=members[second].group_instance_id)
    assert driven.rejoin(mixed).error is Error.FENCED_INSTANCE_ID
    assert driven.sync(mixed).error is Error.FENCED_INSTANCE_ID
    assert driven.heartbeat(mixed).error is Error.FENCED_INSTANCE_ID
    assert driven.state() is State.STABLE


def test_an_unknown_instance_id_makes_even_a_valid_member_id_unknown(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    unknown = replace(member, group_instance_id="unknown")
    assert driven.rejoin(unknown).error is Error.UNKNOWN_MEMBER_ID
    assert driven.sync(unknown).error is Error.UNKNOWN_MEMBER_ID
    assert driven.heartbeat(unknown).error is Error.UNKNOWN_MEMBER_ID


def test_a_static_member_may_send_its_member_id_only(driven: Driven) -> None:
    (member,) = driven.stable_group(1, static=1)
    bare = replace(member, group_instance_id=None)
    assert driven.heartbeat(bare).error is Error.NONE
    assert driven.sync(bare).error is Error.NONE
    assert joined(driven.rejoin(bare)).generation_id == 2


def test_fencing_is_checked_before_the_generation(driven: Driven) -> None:
    (member,) = driven.stable_group(1, static=1)
    assert driven.heartbeat(replace(member, member_id="x", generation_id=9)).error is Error.FENCED_INSTANCE_ID


# ---- returns while members rejoin ------------------------------------------------------------------------------


def test_of_two_processes_with_one_instance_id_the_later_fences_the_earlier_in_the_first_delay(driven: Driven) -> None:
    first = driven.join(instance="instance")
    (old,) = classic(driven.group).members
    second = driven.join(instance="instance")
    assert first.body == JoinGroupResponse(error_code=Error.FENCED_INSTANCE_ID, member_id=old)
    assert driven.sleep(DELAY_MS) == [second]
    assert joined(second).leads
    assert len(classic(driven.group).members) == 1


def test_a_parked_join_is_fenced_by_the_members_return(driven: Driven) -> None:
    leader, follower, third = driven.stable_group(3, static=3)
    driven.rejoin(leader)
    parked = driven.rejoin(follower)
    duplicate = driven.join(instance="instance-1")
    assert parked.body == fenced(follower)
    assert duplicate.parked
    driven.rejoin(third)
    assert joined(duplicate).generation_id == 2
    assert len(classic(driven.group).members) == 3


def test_a_return_can_complete_the_join(driven: Driven) -> None:
    leader, follower = driven.stable_group(2, static=2)
    answer = driven.rejoin(leader)
    returned = driven.join(instance="instance-1")
    assert joined(answer).generation_id == joined(returned).generation_id == 2
    assert driven.rejoin(follower).body == fenced(follower)


def test_a_member_id_is_new_each_time(driven: Driven) -> None:
    (member,) = driven.stable_group(1, static=1)
    ids = {member.member_id} | {joined(driven.join(instance="instance-0")).member_id for _ in range(5)}
    assert len(ids) == 6


# ---- returns before the assignment -----------------------------------------------------------------------------


def test_a_return_before_the_assignment_begins_another_rebalance(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2, static=2)
    parked = driven.sync(follower)
    returned = driven.join(instance="instance-0")
    assert parked.error is Error.REBALANCE_IN_PROGRESS
    assert returned.parked
    driven.rejoin(follower)
    member = joined(returned)
    assert (member.generation_id, member.leads) == (2, True)
    assert driven.heartbeat(leader).error is Error.FENCED_INSTANCE_ID


def test_a_parked_sync_is_fenced_by_the_members_return(driven: Driven) -> None:
    leader, follower = driven.join_with_members(2, static=2)
    parked = driven.sync(follower)
    returned = driven.join(instance="instance-1")
    assert parked.body == SyncGroupResponse(error_code=Error.FENCED_INSTANCE_ID)
    driven.sleep(SESSION_MS)
    assert joined(returned).leads, "the leader's session has expired, that of the waiting member has not"
    assert driven.heartbeat(leader).error is Error.UNKNOWN_MEMBER_ID


def test_a_known_member_id_before_the_assignment_is_answered_with_the_generation(driven: Driven) -> None:
    members = driven.join_with_members(2, static=2)
    assert [joined(driven.rejoin(member)).generation_id for member in members] == [1, 1]
    driven.sync_all(members)


# ---- returns to a stable group ---------------------------------------------------------------------------------


def test_a_leader_that_returns_still_leads_without_a_rebalance(driven: Driven) -> None:
    leader, follower = driven.stable_group(2, static=2)
    before = len(driven.journal)
    answer = driven.join(instance="instance-0")
    member = joined(answer)
    assert member.member_id != leader.member_id
    assert (member.generation_id, member.leads, answer.body.skip_assignment) == (1, True, True)
    assert {m.member_id for m in answer.body.members} == {member.member_id, follower.member_id}
    assert driven.state() is State.STABLE
    assert driven.records[before:] == [
        StaticMemberReplaced("instance-0", leader.member_id, member.member_id),
        LeaderElected(member.member_id),
    ]
    assert driven.sync(member).body.assignment == assignment_of(leader.member_id)
    assert driven.heartbeat(follower).error is Error.NONE


@pytest.mark.parametrize("version", range(5, 9))
def test_a_leader_of_an_older_version_gets_its_old_id_so_that_it_does_not_assign(driven: Driven, version: int) -> None:
    leader, _ = driven.stable_group(2, static=2)
    answer = driven.join(instance="instance-0", version=version)
    assert answer.body.leader == leader.member_id != answer.body.member_id
    assert (answer.body.members, answer.body.skip_assignment) == ([], False)
    assert classic(driven.group).leader == answer.body.member_id


@pytest.mark.parametrize("version", range(5, 10))
def test_a_follower_that_returns_keeps_its_assignment(driven: Driven, version: int) -> None:
    leader, follower = driven.stable_group(2, static=2)
    answer = driven.join(instance="instance-1", version=version)
    member = joined(answer)
    assert (member.generation_id, member.leader) == (1, leader.member_id)
    assert (answer.body.members, answer.body.skip_assignment) == ([], False)
    assert driven.sync(member).body.assignment == assignment_of(follower.member_id)


def test_a_return_updates_timeouts_and_protocols(driven: Driven) -> None:
    driven.stable_group(1, static=1)
    protocols = listing("range", "sticky", metadata=b"other topics")
    answer = driven.join(instance="instance-0", session_ms=7_000, rebalance_ms=8_000, protocols=protocols)
    assert driven.state() is State.STABLE, "only the name of the protocol counts"
    (member,) = classic(driven.group).members.values()
    assert member.member_id == answer.body.member_id
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (7_000, 8_000)
    assert member.lists_same_protocols(protocols)


def test_a_return_starts_a_session_of_the_old_length(driven: Driven) -> None:
    driven.stable_group(1, static=1)
    driven.sleep(SESSION_MS - 1)
    driven.join(instance="instance-0", session_ms=60_000)
    driven.sleep(SESSION_MS - 1)
    assert driven.state() is State.STABLE
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_the_old_member_id_is_fenced_after_the_return(driven: Driven) -> None:
    old = driven.stable_group(2, static=2)[0]
    driven.join(instance="instance-0")
    assert driven.rejoin(old).body == fenced(old)
    assert driven.sync(old).error is Error.FENCED_INSTANCE_ID
    assert driven.heartbeat(old).error is Error.FENCED_INSTANCE_ID
    bare = replace(old, group_instance_id=None)
    assert driven.sync(bare).error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("instance", ["instance-0", "instance-1"])
def test_a_return_that_changes_the_vote_rebalances(driven: Driven, instance: str) -> None:
    both = listing("range", "roundrobin")
    driven.stable_group(2, static=2, protocols=both)
    answer = driven.join(instance=instance, protocols=listing("roundrobin"))
    assert answer.parked
    assert driven.state() is State.PREPARING_REBALANCE
    other = next(m for m in classic(driven.group).members.values() if m.group_instance_id != instance)
    driven.rejoin(Joined(other.member_id, 1, other.group_instance_id), protocols=both)
    assert (answer.body.generation_id, answer.body.protocol_name) == (2, "roundrobin")


def test_a_leader_that_rejoins_with_its_member_id_rebalances(driven: Driven) -> None:
    leader, follower = driven.stable_group(2, static=2)
    answer = driven.rejoin(leader)
    assert answer.parked
    driven.sleep(SESSION_MS)
    assert joined(answer).generation_id == 2
    assert driven.heartbeat(follower).error is Error.UNKNOWN_MEMBER_ID


def test_a_follower_that_rejoins_unchanged_with_its_member_id_does_not(driven: Driven) -> None:
    _, follower = driven.stable_group(2, static=2)
    assert joined(driven.rejoin(follower)).generation_id == 1
    assert driven.state() is State.STABLE


def test_a_return_before_its_predecessor_had_synced_rebalances_when_the_time_to_sync_is_over(driven: Driven) -> None:
    leader, late = driven.join_with_members(2, static=2)
    driven.sync(leader)
    returned = joined(driven.join(instance="instance-1"))
    assert driven.sync(returned).error is Error.NONE
    assert list(classic(driven.group).pending_syncs) == [late.member_id]
    driven.sleep_with_heartbeats(REBALANCE_MS - 1, leader, returned)
    assert driven.state() is State.STABLE
    driven.sleep(1)
    assert driven.state() is State.PREPARING_REBALANCE
    assert set(classic(driven.group).members) == {leader.member_id, returned.member_id}


# ---- away while others rebalance -------------------------------------------------------------------------------


def test_an_absent_follower_keeps_its_place_in_a_new_generation(driven: Driven) -> None:
    leader, absent, other = driven.stable_group(3, static=3, session_ms=60_000)
    answer = driven.rejoin(leader)
    driven.rejoin(other)
    driven.sleep(REBALANCE_MS)
    assert joined(answer).generation_id == 2
    assert {m.member_id for m in answer.body.members} == {leader.member_id, absent.member_id, other.member_id}


def test_an_absent_leader_keeps_its_place_but_no_longer_leads(driven: Driven) -> None:
    leader, *followers = driven.stable_group(3, static=3, session_ms=60_000)
    driven.rejoin(followers[0], protocols=listing("range", "sticky"))
    answers = [driven.rejoin(follower) for follower in followers]
    driven.sleep(REBALANCE_MS)
    (leading,) = [answer for answer in answers if joined(answer).leads]
    assert len(leading.body.members) == 3
    assert leader.member_id in classic(driven.group).members


def test_an_absent_static_member_is_removed_when_it_does_not_sync_either(driven: Driven) -> None:
    leader, absent = driven.stable_group(2, static=2, session_ms=600_000)
    answer = driven.rejoin(leader, session_ms=600_000)
    driven.sleep(REBALANCE_MS)
    member = joined(answer)
    driven.sync(member)
    driven.sleep(REBALANCE_MS)
    assert absent.member_id not in classic(driven.group).members
    assert driven.heartbeat(member).error is Error.REBALANCE_IN_PROGRESS


def test_a_member_that_only_heartbeats_falls_behind_and_its_session_ends(driven: Driven) -> None:
    (static,) = driven.stable_group(1, static=1)
    newcomer = driven.join_new("c2")
    driven.sleep_with_heartbeats(REBALANCE_MS, static)
    member = joined(newcomer)
    assert (member.generation_id, member.leads) == (2, True)
    assert static.member_id in classic(driven.group).members
    assert driven.heartbeat(static).error is Error.ILLEGAL_GENERATION
    driven.sync(member)
    driven.sleep_with_heartbeats(SESSION_MS, member)
    assert driven.heartbeat(member).error is Error.REBALANCE_IN_PROGRESS
    member = joined(driven.rejoin(member))
    assert member.generation_id == 3
    driven.sync_all([member])
    driven.sleep_with_heartbeats(3 * REBALANCE_MS, member)
    assert (driven.state(), driven.group.generation) == (State.STABLE, 3)


def test_with_only_absent_static_members_the_join_stays_open(driven: Driven) -> None:
    absent, leaver, dynamic = driven.stable_group(3, static=2, session_ms=500_000)
    driven.leave(leaver)
    driven.sleep(REBALANCE_MS)
    assert driven.state() is State.PREPARING_REBALANCE
    assert set(classic(driven.group).members) == {absent.member_id}
    assert driven.heartbeat(dynamic).error is Error.UNKNOWN_MEMBER_ID
    driven.sleep(10 * REBALANCE_MS)
    assert (driven.state(), driven.group.generation) == (State.PREPARING_REBALANCE, 1)
    returned = driven.join(instance="instance-0")
    assert joined(returned).generation_id == 2


def test_the_join_with_only_absent_static_members_ends_with_their_sessions(driven: Driven) -> None:
    _, leaver = driven.stable_group(2, static=2, session_ms=25_000)
    driven.leave(leaver)
    driven.sleep(24_999)
    assert driven.state() is State.PREPARING_REBALANCE
    driven.sleep(1)
    assert driven.state() is State.EMPTY
    assert driven.records[-2] == GenerationStarted(2, None)


@pytest.mark.parametrize("rebalance_ms", [500, 870])
def test_absent_static_members_are_checked_for_at_multiples_of_a_short_rebalance_timeout(
    driven: Driven, rebalance_ms: int
) -> None:
    _, leaver = driven.stable_group(2, static=2, session_ms=500_000, rebalance_ms=rebalance_ms)
    driven.leave(leaver)
    driven.sleep(3 * rebalance_ms)
    unused = driven.join(session_ms=500_000)
    assert unused.error is Error.MEMBER_ID_REQUIRED
    driven.sleep(1)
    returned = driven.join(instance="instance-0", session_ms=500_000, rebalance_ms=rebalance_ms)
    driven.sleep(rebalance_ms - 2)
    assert returned.parked, "the handed-out member id keeps the join open until the next check"
    driven.sleep(1)
    assert joined(returned).generation_id == 2


def test_a_rebalance_timeout_of_zero_does_not_stop_the_clock(driven: Driven) -> None:
    (static,) = driven.stable_group(1, static=1, session_ms=500_000)
    driven.rejoin(static, rebalance_ms=0, session_ms=500_000)
    assert driven.state() is State.EMPTY, "no time to sync"
    driven.stable_group(2, static=1, session_ms=500_000)
    _, dynamic = classic(driven.group).members.values()
    returned = driven.join(instance="instance-0", rebalance_ms=0, session_ms=500_000)
    driven.leave(Joined(dynamic.member_id))
    assert driven.state() is State.PREPARING_REBALANCE
    driven.sleep(499_999)
    assert set(classic(driven.group).members) == {returned.body.member_id}
    driven.sleep(1)
    assert driven.state() is State.EMPTY


def test_a_rebalance_after_a_rebalance_with_changing_members(driven: Driven) -> None:
    leader, follower = driven.stable_group(2, static=2)
    first = driven.rejoin(leader)
    driven.rejoin(follower, protocols=listing("range", "sticky"))
    leader = joined(first)
    assert leader.generation_id == 2
    changed = driven.rejoin(follower, protocols=listing("sticky", "range"))
    driven.sleep(SESSION_MS)
    assert joined(changed).leads, "the parked follower was exempt from expiry, the silent leader was not"
    assert driven.heartbeat(leader).error is Error.UNKNOWN_MEMBER_ID
