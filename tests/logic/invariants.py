"""What must hold after every step, whatever has happened."""

from collections.abc import Sequence
from itertools import pairwise

from coordinator_logic import snapshot
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.group import Group
from coordinator_logic.records import GroupCreated, JournalEntry, StateChanged, fold
from coordinator_logic.states import TRANSITIONS, State
from coordinator_logic.step import StepResult
from coordinator_logic.timers import earliest, wake_time

GATHERING = State.PREPARING_REBALANCE
SYNCING = (State.COMPLETING_REBALANCE, State.STABLE)


def check_group(
    result: StepResult,
    clock_before: int,
    batch_time: int,
    started_at: int,
    config: CoordinatorConfig,
    unanswered: set[str],
) -> None:
    """Everything about the group that a step left."""
    group = result.group
    if group is None:
        assert result.wake_at is None
        return
    assert snapshot.decode(snapshot.encode(group)) == group
    if group.state is State.DEAD:
        assert result.wake_at is None
        return
    assert group.clock >= clock_before, "the group's clock went back"
    _check_members(group)
    _check_parked(group, unanswered)
    _check_timers(group)
    due = earliest(group, started_at)
    assert result.wake_at == (None if due is None else wake_time(due[1], started_at, config))
    assert result.wake_at is None or result.wake_at > batch_time, "a deadline was due and did not fire"


def _check_members(group: Group) -> None:
    assert (group.leader in group.members) if group.members else group.leader is None
    assert all(member_id == member.member_id for member_id, member in group.members.items())
    assert not (group.members and group.state is State.EMPTY)
    assert group.members or group.state in (State.EMPTY, GATHERING)
    assert not group.members or group.protocol_candidates(), "the members have no protocol in common"
    assert group.protocol_name is None or group.state is not State.EMPTY
    instances = [member.group_instance_id for member in group.members.values() if member.is_static]
    assert len(instances) == len(set(instances)), "two members hold one instance id"


def _check_parked(group: Group, unanswered: set[str]) -> None:
    joins = [member.parked_join for member in group.members.values() if member.parked_join is not None]
    syncs = [member.parked_sync for member in group.members.values() if member.parked_sync is not None]
    assert not joins or group.state is GATHERING
    assert not syncs or group.state is State.COMPLETING_REBALANCE
    parked = [address.correlation_id for address in joins + syncs]
    assert len(parked) == len(set(parked))
    assert unanswered >= set(parked), "a request is parked that has been answered"
    assert len(group.pending_joins) == len(set(group.pending_joins))
    assert not group.members.keys() & set(group.pending_joins)
    assert not group.pending_syncs or group.state in SYNCING
    assert len(group.pending_syncs) == len(set(group.pending_syncs))


def _check_timers(group: Group) -> None:
    for member in group.members.values():
        assert member.is_excused or f"heartbeat-{member.member_id}" in group.timers, "nobody watches a member"
    assert all(f"heartbeat-{member_id}" in group.timers for member_id in group.pending_joins)
    assert ("join" in group.timers) == (group.state is GATHERING)
    assert ("sync" in group.timers) == bool(group.pending_syncs)


def check_journal(journal: Sequence[JournalEntry], group: Group | None) -> None:
    """The journal counts without gaps, tells legal transitions only, and folds to the group."""
    for earlier, later in pairwise(journal):
        if later.incarnation == earlier.incarnation:
            assert later.sequence == earlier.sequence + 1
            assert later.timestamp >= earlier.timestamp
        else:
            assert later.sequence == 1
            assert isinstance(later.record, GroupCreated)
    for entry in journal:
        if isinstance(entry.record, StateChanged):
            assert State(entry.record.to_state) in TRANSITIONS[State(entry.record.from_state)]
    folded = fold(list(journal))
    if group is None or (group.state is State.DEAD and not journal):
        assert folded is None
        return
    assert folded is not None
    assert _recorded(folded) == _recorded(group)
    assert folded.sequence == group.sequence


def _recorded(group: Group) -> tuple[object, ...]:
    """All that only records may change."""
    members = [
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.protocols,
            member.assignment,
        )
        for member in group.members.values()
    ]
    return (
        group.group_id,
        group.incarnation,
        group.state,
        group.previous_state,
        group.state_timestamp,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        members,
        group.offsets,
    )
