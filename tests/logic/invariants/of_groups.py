"""Invariants of a group at any time."""

from collections.abc import Callable

from coordinator_logic.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from coordinator_logic.group import Group
from coordinator_logic.group.timer import HEARTBEAT
from coordinator_logic.group.transactions import PendingOffsets
from coordinator_logic.groups.classic.member_index import MemberIndex
from coordinator_logic.groups.classic.rebalance import select_protocol
from coordinator_logic.states import State
from tests.logic.invariants.checked_step import PREPARING, SYNCING, parked_requests
from tests.support.parts import classic


def the_leader_is_a_member(group: Group) -> None:
    leader, members = classic(group).leader, classic(group).members
    assert (leader in members) if members else leader is None


def members_are_keyed_by_their_ids(group: Group) -> None:
    assert all(member_id == member.member_id for member_id, member in classic(group).members.items())


def an_instance_id_has_one_owner(group: Group) -> None:
    instances = [member.group_instance_id for member in classic(group).members.values() if member.is_static]
    assert len(instances) == len(set(instances)), "two members have one instance id"


def only_a_group_in_empty_or_preparing_has_no_members(group: Group) -> None:
    assert not (classic(group).members and group.state is State.EMPTY)
    assert classic(group).members or group.state in (State.EMPTY, PREPARING)


def members_have_a_protocol_in_common(group: Group) -> None:
    assert not classic(group).members or classic(group).protocol_candidates(), "the members have no protocol in common"
    assert classic(group).protocol_name is None or group.state is not State.EMPTY


def a_generation_uses_the_protocol_that_wins_the_vote(group: Group) -> None:
    if group.state in SYNCING:
        assert classic(group).protocol_name == select_protocol(classic(group)), (
            "the members would vote for another protocol now"
        )


def requests_are_parked_only_in_the_states_that_wait_for_them(group: Group) -> None:
    for member in classic(group).members.values():
        assert member.parked_join is None or group.state is PREPARING
        assert member.parked_sync is None or group.state is State.COMPLETING_REBALANCE
        assert member.parked_sync is None or member.member_id != classic(group).leader, "the leader waits for itself"


def a_request_is_parked_once(group: Group) -> None:
    parked = [address.correlation_id for address, _ in parked_requests(group)]
    assert len(parked) == len(set(parked))


def an_abandoned_generation_leaves_no_assignment(group: Group) -> None:
    if group.state is PREPARING and group.part.previous_state is State.COMPLETING_REBALANCE:
        assert not any(member.assignment for member in classic(group).members.values())


def members_of_a_generation_have_joined(group: Group) -> None:
    if group.state in SYNCING:
        assert not any(member.is_new for member in classic(group).members.values()), "a new member has not joined yet"


def handed_out_ids_are_not_members(group: Group) -> None:
    assert len(classic(group).pending_joins) == len(set(classic(group).pending_joins))
    assert not classic(group).members.keys() & set(classic(group).pending_joins)


def pending_syncs_are_the_members_that_have_not_synced(group: Group) -> None:
    assert len(classic(group).pending_syncs) == len(set(classic(group).pending_syncs))
    assert not classic(group).pending_syncs or group.state in SYNCING
    if group.state is State.COMPLETING_REBALANCE:
        not_synced = {member.member_id for member in classic(group).members.values() if member.parked_sync is None}
        assert set(classic(group).pending_syncs) == not_synced


def every_member_has_a_session_timer_or_is_exempt(group: Group) -> None:
    for member in classic(group).members.values():
        waits_for_answer = member.parked_join is not None or member.parked_sync is not None
        is_exempt = waits_for_answer and not member.is_new
        assert is_exempt or f"heartbeat-{member.member_id}" in group.timers, "a member's session cannot expire"
    assert all(f"heartbeat-{member_id}" in group.timers for member_id in classic(group).pending_joins)


def timers_are_armed_only_in_their_states(group: Group) -> None:
    assert ("join" in group.timers) == (group.state is PREPARING)
    assert ("sync" in group.timers) == bool(classic(group).pending_syncs)
    may_expire = group.state in (State.EMPTY, State.STABLE) or group.open_transactions
    assert "expiry" not in group.timers or may_expire


def the_sync_timer_is_of_this_generation(group: Group) -> None:
    sync = group.timers.get("sync")
    assert sync is None or sync.generation == group.generation


def no_deadline_is_out_of_bounds(group: Group) -> None:
    for key, timer in group.timers.items():
        assert timer.armed_at <= group.clock, "a timer was armed in the future"
        if timer.kind == HEARTBEAT:
            assert key == f"heartbeat-{timer.member_id}"
            member = classic(group).members.get(timer.member_id)
            if member is not None and member.is_new:
                assert timer.timeout_ms in (NEW_MEMBER_JOIN_TIMEOUT_MS, member.session_timeout_ms)


def the_index_agrees_with_the_members(group: Group) -> None:
    derived = MemberIndex(classic(group).members.values(), classic(group).pending_joins)
    for name in MemberIndex.__slots__:
        assert getattr(classic(group).member_index, name) == getattr(derived, name), (
            f"{name} of the index is out of date"
        )


def the_index_agrees_with_the_pending_offsets(group: Group) -> None:
    assert group.pending_offsets == PendingOffsets(group.open_transactions), "the index is out of date"


GROUP_INVARIANTS: tuple[Callable[[Group], None], ...] = (
    the_leader_is_a_member,
    members_are_keyed_by_their_ids,
    an_instance_id_has_one_owner,
    only_a_group_in_empty_or_preparing_has_no_members,
    members_have_a_protocol_in_common,
    a_generation_uses_the_protocol_that_wins_the_vote,
    requests_are_parked_only_in_the_states_that_wait_for_them,
    a_request_is_parked_once,
    an_abandoned_generation_leaves_no_assignment,
    members_of_a_generation_have_joined,
    handed_out_ids_are_not_members,
    pending_syncs_are_the_members_that_have_not_synced,
    every_member_has_a_session_timer_or_is_exempt,
    timers_are_armed_only_in_their_states,
    the_sync_timer_is_of_this_generation,
    no_deadline_is_out_of_bounds,
    the_index_agrees_with_the_members,
    the_index_agrees_with_the_pending_offsets,
)
"""Invariants of a group that is not Dead."""
