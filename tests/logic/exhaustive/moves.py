"""The requests that the search sends in each state, with the outcomes that Kafka's protocol allows.

The expected outcomes are written down by state, independently of the handlers.
"""

from collections.abc import Iterator
from typing import NamedTuple

from coordinator_logic.group import Group
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.messages import (
    DeleteGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    RequestBody,
    SyncGroupRequest,
    TopicToCommit,
)
from coordinator_logic.states import State
from tests.logic.exhaustive.scope import GROUP_ID, LISTS, UNIT_MS, Scope
from tests.support.parts import classic

EMPTY, PREPARING, COMPLETING, STABLE = (
    State.EMPTY,
    State.PREPARING_REBALANCE,
    State.COMPLETING_REBALANCE,
    State.STABLE,
)

PARK = "park"
JOIN = "join"
"""The request is parked, or it completes the join and the response has the new generation."""

TICK = "time passes"
RESTART = "the coordinator restarts"


class Move(NamedTuple):
    """A request and its allowed outcomes: :data:`PARK`, :data:`JOIN`, or the error code of the response."""

    name: str
    api: str
    version: int
    body: RequestBody
    expected: frozenset[str]


def move(name: str, api: str, version: int, body: RequestBody, *expected: str) -> Move:
    """Create a move with one or several allowed outcomes."""
    return Move(name, api, version, body, frozenset(expected))


def moves(scope: Scope, group: Group | None) -> Iterator[Move]:
    """Yield every request that can change the group, and some that change nothing."""
    yield from _first_joins(scope, group)
    if group is None:
        return
    for i, member_id in enumerate(classic(group).pending_joins):
        expected = "81" if _is_full(scope, group) else JOIN
        yield move(f"pending id {i} joins", "JoinGroup", 9, _join(scope, member_id), expected)
        yield move(f"pending id {i} leaves", "LeaveGroup", 5, _leave([LeavingMember(member_id)]), "0")
    for i, member in enumerate(classic(group).members.values()):
        yield from _moves_of_member(scope, group, f"member {i}", member)
    if len(classic(group).members) > 1:
        all_members = [LeavingMember(member_id) for member_id in classic(group).members]
        yield move("all members leave", "LeaveGroup", 5, _leave(all_members), "0")
    if group.state is EMPTY:
        yield move("the group is deleted", "DeleteGroups", 2, DeleteGroupsRequest([GROUP_ID]), "0")


def _first_joins(scope: Scope, group: Group | None) -> Iterator[Move]:
    places_taken = len(classic(group).members) + len(classic(group).pending_joins) if group is not None else 0
    is_full = group is not None and _is_full(scope, group)
    expected = "81" if is_full else JOIN
    for preference in range(scope.lists):
        for instance in scope.instances:
            holder = classic(group).member_of_instance(instance) if group is not None else None
            if group is not None and holder is not None:
                outcomes = _outcomes_of_returning_static_member(scope, group, is_full=is_full)
                for version in (8, 9):
                    name = f"the owner of {instance} returns, version {version}, list {preference}"
                    yield move(name, "JoinGroup", version, _join(scope, "", instance, preference), *outcomes)
            elif places_taken < scope.room:
                name = f"{instance} joins, list {preference}"
                yield move(name, "JoinGroup", 9, _join(scope, "", instance, preference), expected)
        if places_taken < scope.room and scope.old_joins:
            yield move(
                f"an old client joins, list {preference}",
                "JoinGroup",
                3,
                _join(scope, "", None, preference),
                expected,
            )
    if places_taken < scope.room and scope.dynamic:
        yield move("a client requests an id", "JoinGroup", 9, _join(scope, ""), "81" if is_full else "79")


def _outcomes_of_returning_static_member(scope: Scope, group: Group, *, is_full: bool) -> tuple[str, ...]:
    if is_full:
        return ("81",)
    if group.state is STABLE:
        return ("0", JOIN) if scope.lists > 1 else ("0",)
    return (JOIN,)


def _is_full(scope: Scope, group: Group, member: Member | None = None) -> bool:
    """Return whether the group has no capacity (KIP-389) for this member, or for a new one if it is None."""
    if group.state is EMPTY:
        return False
    if group.state is PREPARING:
        has_joined = member is not None and member.parked_join is not None
        return not has_joined and classic(group).member_index.awaiting_join >= scope.max_size
    return member is None and len(classic(group).members) >= scope.max_size


def _moves_of_member(scope: Scope, group: Group, name_of_member: str, member: Member) -> Iterator[Move]:
    leads = member.member_id == classic(group).leader
    instance = member.group_instance_id
    outcome_in_state = {PREPARING: JOIN, COMPLETING: "0", STABLE: JOIN if leads else "0"}
    full = _is_full(scope, group, member)
    for preference in range(scope.lists):
        expected = "81" if full else outcome_in_state[group.state] if preference == list_of(member) else JOIN
        name = f"{name_of_member} rejoins, list {preference}"
        yield move(name, "JoinGroup", 9, _join(scope, member.member_id, instance, preference), expected)
    expected = {PREPARING: "27", COMPLETING: "0" if leads else PARK, STABLE: "0"}[group.state]
    yield move(f"{name_of_member} syncs", "SyncGroup", 5, _sync(group, member, leads=leads), expected)
    expected = "27" if group.state is PREPARING else "0"
    heartbeat = HeartbeatRequest(GROUP_ID, group.generation, member.member_id, instance)
    yield move(f"{name_of_member} heartbeats", "Heartbeat", 4, heartbeat, expected)
    expected = "27" if group.state is COMPLETING else "12"
    yield move(
        f"{name_of_member} commits", "OffsetCommit", 9, _commit(group.generation, member.member_id, instance), expected
    )
    by_id = LeavingMember(member.member_id, instance)
    yield move(f"{name_of_member} leaves", "LeaveGroup", 5, _leave([by_id]), "0")
    if instance is not None:
        yield move(
            f"{name_of_member} is removed by {instance}", "LeaveGroup", 3, _leave([LeavingMember("", instance)]), "0"
        )


def list_of(member: Member) -> int:
    """Return the index in :data:`LISTS` of the member's protocols."""
    return next(i for i, listed in enumerate(LISTS) if listed[0].name == member.protocols[0].name)


# ---- bodies ----------------------------------------------------------------------------------------------------


def _join(scope: Scope, member_id: str, instance: str | None = None, preference: int = 0) -> JoinGroupRequest:
    return JoinGroupRequest(
        GROUP_ID,
        scope.session * UNIT_MS,
        "consumer",
        LISTS[preference],
        scope.rebalance * UNIT_MS,
        member_id,
        instance,
    )


def _sync(group: Group, member: Member, *, leads: bool) -> SyncGroupRequest:
    return SyncGroupRequest(
        GROUP_ID,
        group.generation,
        member.member_id,
        member.group_instance_id,
        group.part.protocol_type,
        classic(group).protocol_name or "range",
        [MemberAssignment(member_id, assigned(group)) for member_id in classic(group).members] if leads else [],
    )


def assigned(group: Group) -> bytes:
    """Return the assignment that the leader sends for every member: it names the generation."""
    return f"generation {group.generation}".encode()


def _commit(generation: int, member_id: str, instance: str | None) -> OffsetCommitRequest:
    topics = [TopicToCommit("topic", [PartitionToCommit(0, 7, committed_metadata="too large")])]
    return OffsetCommitRequest(GROUP_ID, topics, generation, member_id, instance)


def _leave(members: list[LeavingMember]) -> LeaveGroupRequest:
    return LeaveGroupRequest(GROUP_ID, members=members)


# ---- refusals --------------------------------------------------------------------------------------------------


def refusals(scope: Scope, group: Group | None) -> Iterator[Move]:
    """Yield requests that must change nothing in this state, with the expected error."""
    yield from _refused_in_any_state(scope)
    if group is None:
        yield from _refused_by_absent_group(scope)
        return
    if group.state is not EMPTY:
        yield move("deleted while in use", "DeleteGroups", 2, DeleteGroupsRequest([GROUP_ID, "other"]), "68,16")
        other_type = JoinGroupRequest(GROUP_ID, UNIT_MS, "connect", LISTS[0])
        full = _is_full(scope, group)
        yield move("other type", "JoinGroup", 9, other_type, "81" if full else "23")
        yield move("anonymous commit", "OffsetCommit", 9, _commit(-1, "", None), "25")
        if classic(group).members:
            other = JoinGroupRequest(GROUP_ID, UNIT_MS, "consumer", [Protocol("other", b"")])
            yield move("other protocols", "JoinGroup", 9, other, "81" if full else "23")
            none = JoinGroupRequest(GROUP_ID, UNIT_MS, "consumer", [])
            yield move("no protocols", "JoinGroup", 9, none, "81" if full else "23")
    yield from _refused_unknown_members(scope, group)
    for member_id in classic(group).pending_joins:
        if not _is_full(scope, group):
            yield move("pending id with an instance id", "JoinGroup", 9, _join(scope, member_id, "any"), "-1")
        heartbeat = HeartbeatRequest(GROUP_ID, group.generation, member_id)
        yield move("pending id heartbeats", "Heartbeat", 4, heartbeat, "25")
    for member in classic(group).members.values():
        yield from _refused_members(scope, group, member)


def _refused_in_any_state(scope: Scope) -> Iterator[Move]:
    for bad in (UNIT_MS - 1, 10 * UNIT_MS + 1):
        yield move("session out of bounds", "JoinGroup", 9, JoinGroupRequest(GROUP_ID, bad, "consumer", LISTS[0]), "26")
    yield move("join, no group", "JoinGroup", 9, JoinGroupRequest("", UNIT_MS, "consumer", LISTS[0]), "24")
    yield move("sync, no group", "SyncGroup", 4, SyncGroupRequest("", 1, "unknown-member"), "24")
    yield move("sync, no protocol", "SyncGroup", 5, SyncGroupRequest(GROUP_ID, 1, "unknown-member"), "23")
    yield move("heartbeat, no group", "Heartbeat", 4, HeartbeatRequest("", 1, "unknown-member"), "24")
    yield move(
        "leave, no group", "LeaveGroup", 5, LeaveGroupRequest("", members=[LeavingMember("unknown-member")]), "24"
    )


def _refused_by_absent_group(scope: Scope) -> Iterator[Move]:
    yield move("join with an id", "JoinGroup", 9, _join(scope, "unknown-member"), "25")
    yield move("sync", "SyncGroup", 4, SyncGroupRequest(GROUP_ID, 1, "unknown-member"), "25")
    yield move("heartbeat", "Heartbeat", 4, HeartbeatRequest(GROUP_ID, 1, "unknown-member"), "25")
    yield move("leave", "LeaveGroup", 5, _leave([LeavingMember("unknown-member"), LeavingMember("", "any")]), "25,25")
    yield move("commit", "OffsetCommit", 9, _commit(1, "unknown-member", None), "69")
    yield move("commit, version 8", "OffsetCommit", 8, _commit(1, "unknown-member", None), "22")
    yield move("deleted", "DeleteGroups", 2, DeleteGroupsRequest([GROUP_ID, GROUP_ID, "other"]), "69,16")


def _refused_unknown_members(scope: Scope, group: Group) -> Iterator[Move]:
    """Yield requests of unknown members: without instance id, with an unknown one, and with another member's."""
    generation = group.generation
    known = next((m.group_instance_id for m in classic(group).members.values() if m.is_static), None)
    full = _is_full(scope, group)
    empty = group.state is EMPTY
    for instance, error in ((None, "25"), ("unknown", "25"), *([(known, "82")] if known else [])):
        yield move("join", "JoinGroup", 9, _join(scope, "unknown-member", instance), "81" if full else error)
        sync = SyncGroupRequest(GROUP_ID, generation, "unknown-member", instance)
        yield move("sync", "SyncGroup", 4, sync, "25" if empty else error)
        yield move(
            "heartbeat", "Heartbeat", 4, HeartbeatRequest(GROUP_ID, generation, "unknown-member", instance), error
        )
        yield move("leave", "LeaveGroup", 5, _leave([LeavingMember("unknown-member", instance)]), error)
        yield move("commit", "OffsetCommit", 9, _commit(generation, "unknown-member", instance), error)
    yield move(
        "leave, empty and unknown ids",
        "LeaveGroup",
        5,
        _leave([LeavingMember(""), LeavingMember("", "unknown")]),
        "25,25",
    )
    yield move("leave, version 2", "LeaveGroup", 2, LeaveGroupRequest(GROUP_ID, "unknown-member"), "25")


def _refused_members(scope: Scope, group: Group, member: Member) -> Iterator[Move]:
    """Yield requests of a member with another generation, protocol, protocol type or instance id."""
    member_id, instance = member.member_id, member.group_instance_id
    for stale in (group.generation - 1, group.generation + 1):
        heartbeat = HeartbeatRequest(GROUP_ID, stale, member_id, instance)
        yield move("stale heartbeat", "Heartbeat", 4, heartbeat, "22")
        sync = SyncGroupRequest(GROUP_ID, stale, member_id, instance)
        yield move("stale sync", "SyncGroup", 4, sync, "22")
        yield move("stale commit", "OffsetCommit", 9, _commit(stale, member_id, instance), "22")
    other = SyncGroupRequest(GROUP_ID, group.generation, member_id, instance, "consumer", "other")
    rebalancing = classic(group).protocol_name is None
    yield move("sync, other protocol", "SyncGroup", 5, other, "27" if rebalancing else "23")
    other = SyncGroupRequest(
        GROUP_ID, group.generation, member_id, instance, "connect", classic(group).protocol_name or "range"
    )
    yield move("sync, other type", "SyncGroup", 5, other, "23")
    unknown = HeartbeatRequest(GROUP_ID, group.generation, member_id, "unknown")
    yield move("heartbeat with an unknown instance id", "Heartbeat", 4, unknown, "25")
    if not _is_full(scope, group, member):
        yield move("rejoin with an unknown instance id", "JoinGroup", 9, _join(scope, member_id, "unknown"), "25")
