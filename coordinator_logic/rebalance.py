"""The rebalance itself: gathering the members, electing a leader, voting for a protocol, starting a generation.

Shared by every handler and timer that can begin, advance or end a rebalance. Source: KIP-62, KIP-134 (initial
rebalance delay), KIP-345 (static members stay although they do not rejoin), KIP-394 (handed-out ids are waited
for).
"""

from collections import Counter

from coordinator_logic.errors import Error
from coordinator_logic.group import Group, Member
from coordinator_logic.messages import JoinedMember, JoinGroupResponse, SyncGroupResponse
from coordinator_logic.partitioning import java_string_hash
from coordinator_logic.records import AssignmentChanged, GenerationStarted, LeaderElected, MemberRemoved
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

ABSENT_MEMBERS_CHECK_MS = 1_000
"""How long at least a group with absent static members only waits before it looks again.

A rebalance timeout may be 0 (no version of the protocol forbids it); a timer that re-arms itself with that would
never let time go on.
"""


def remove_member(turn: Turn, member_id: str, reason: str) -> None:
    """Take a member, or a handed-out id, out of the group. Answers nothing and ends no timer.

    An id that is neither is only dropped from the sets that may still name it.
    """
    group = turn.group
    member = group.members.get(member_id)
    if member is not None:
        turn.record(MemberRemoved(member_id, member.group_instance_id, reason))
        if group.leader == member_id:
            turn.record(LeaderElected(next(iter(group.members), None)))
    for waiting in (group.pending_joins, group.pending_syncs):
        if member_id in waiting:
            waiting.remove(member_id)


def maybe_rebalance_or_complete_join(turn: Turn, reason: str) -> None:
    """Begin a rebalance, or, where one is under way, see whether this completes its join."""
    if turn.group.can_rebalance:
        prepare_rebalance(turn, reason)
    else:
        maybe_complete_join(turn)


def prepare_rebalance(turn: Turn, reason: str) -> None:
    """Begin a rebalance: from here on the members are gathered anew.

    The members learn of it by the answer to their next heartbeat; those that wait for an assignment, at once.
    The first rebalance of an Empty group waits for the initial delay, so that members that start together
    form one generation together.
    """
    group = turn.group
    if group.state is State.COMPLETING_REBALANCE:
        _cancel_parked_syncs(turn)
    group.pending_syncs.clear()
    turn.cancel_sync()
    if group.state is State.EMPTY:
        delay = turn.config.group_initial_rebalance_delay_ms
        turn.arm_initial_join(delay, max(group.rebalance_timeout_ms - delay, 0))
        turn.change_state(State.PREPARING_REBALANCE, reason)
        return
    turn.change_state(State.PREPARING_REBALANCE, reason)
    if group.all_members_joined:
        complete_join(turn)
    else:
        turn.arm_join()


def _cancel_parked_syncs(turn: Turn) -> None:
    group = turn.group
    if any(member.assignment for member in group.members.values()):
        turn.record(AssignmentChanged({}))
    rebalancing = SyncGroupResponse(error_code=Error.REBALANCE_IN_PROGRESS)
    for member in group.members.values():
        if turn.reply_to_parked_sync(member, rebalancing):
            turn.arm_session(member)


def maybe_complete_join(turn: Turn) -> None:
    """Complete the join if everybody is there. During the initial delay the delay decides, not this."""
    group = turn.group
    if (
        group.state is State.PREPARING_REBALANCE
        and group.previous_state is not State.EMPTY
        and group.all_members_joined
    ):
        complete_join(turn)


def complete_join(turn: Turn) -> None:
    """End the gathering: whoever has joined forms the new generation.

    Dynamic members that have not rejoined lose their place; static ones keep it until their session ends. While
    only absent static members are there, nobody could lead, and the group goes on waiting.
    """
    group = turn.group
    turn.cancel_join()
    for member in list(group.members.values()):
        if not member.is_static and member.parked_join is None:
            turn.cancel_heartbeat(member.member_id)
            remove_member(turn, member.member_id, "did not rejoin within the rebalance timeout")
    if group.members and not _elect_joined_leader(turn):
        turn.arm_join(at_least_ms=ABSENT_MEMBERS_CHECK_MS)
        return
    _start_generation(turn)
    if group.members:
        _announce_generation(turn)


def _elect_joined_leader(turn: Turn) -> bool:
    """Make sure that the leader is one who has joined; whether there is such a member."""
    group = turn.group
    if group.leader is not None and group.members[group.leader].parked_join is not None:
        return True
    joined = next((m.member_id for m in group.members.values() if m.parked_join is not None), None)
    if joined is None:
        return False
    turn.record(LeaderElected(joined))
    return True


def _start_generation(turn: Turn) -> None:
    group = turn.group
    protocol_name = select_protocol(group) if group.members else None
    turn.record(GenerationStarted(group.generation + 1, protocol_name))
    if group.members:
        turn.change_state(State.COMPLETING_REBALANCE, f"generation {group.generation} has its members")
    else:
        turn.change_state(State.EMPTY, "no member is left")
    group.pending_syncs.clear()


def _announce_generation(turn: Turn) -> None:
    group = turn.group
    for member in group.members.values():
        turn.reply_to_parked_join(member, join_response(group, member))
        turn.arm_session(member)
        member.is_new = False
        group.pending_syncs.append(member.member_id)
    turn.arm_sync()


def join_response(group: Group, member: Member) -> JoinGroupResponse:
    """The current generation as a member is told of it; only the leader sees the members."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=joined_members(group) if member.member_id == group.leader else [],
    )


def joined_members(group: Group) -> list[JoinedMember]:
    """The members as the leader sees them: with their metadata for the chosen protocol."""
    return [
        JoinedMember(member.member_id, member.group_instance_id, member.metadata_for(group.protocol_name))
        for member in group.members.values()
    ]


def select_protocol(group: Group) -> str:
    """The protocol that wins the vote: each member votes for the first of its own that all members list.

    Ties go to the first in the iteration order of the Java map in which a broker counts the votes, so that a
    group chooses the same protocol here and there.
    """
    candidates = group.protocol_candidates()
    assert candidates, f"the members of group {group.group_id!r} have no protocol in common"
    votes = Counter(
        next(protocol.name for protocol in member.protocols if protocol.name in candidates)
        for member in group.members.values()
    )
    return min(votes, key=lambda name: (-votes[name], _java_map_bucket(name)))


def _java_map_bucket(key: str) -> int:
    """The bucket of a key in a java.util.HashMap of the default 16 buckets."""
    hashed = java_string_hash(key) & 0xFFFFFFFF
    return (hashed ^ hashed >> 16) & 15
