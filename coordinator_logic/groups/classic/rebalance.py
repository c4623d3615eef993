"""The rebalance: collecting the members, electing a leader, voting for a protocol, starting a generation.

Every handler and timer that can begin, advance or complete a rebalance uses these functions. Source: KIP-62, KIP-134
(initial rebalance delay), KIP-345 (static members keep their place without rejoining), KIP-394 (a join waits for
handed-out member ids).
"""

from collections import Counter

from coordinator_logic.errors import Error
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.classic.records import AssignmentChanged, GenerationStarted, LeaderElected, StateChanged
from coordinator_logic.groups.classic.timers import arm_initial_join, arm_join, arm_session, arm_sync
from coordinator_logic.messages import JoinedMember, JoinGroupResponse, SyncGroupResponse
from coordinator_logic.partitioning import java_string_hash
from coordinator_logic.records import MemberRemoved
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

ABSENT_MEMBERS_CHECK_MS = 500
"""The shortest interval at which a group whose static members are all absent checks for them.

A rebalance timeout may be 0; a timer that re-arms itself with a timeout of 0 would fire endlessly at the same time. The
bound is about one batch. With a rebalance timeout of at least this long, the checks come when a broker's do.
"""


def change_state(turn: Turn, target: State, reason: str) -> None:
    """Record a transition of the group."""
    turn.record(StateChanged(turn.group.state.value, target.value, reason))


def reply_to_parked_join(turn: Turn, member: Member, body: JoinGroupResponse) -> None:
    """Answer the member's parked JoinGroup, if there is one."""
    if member.parked_join is not None:
        address = member.parked_join
        turn.group.part_as(ClassicGroup).member_index.park_join(member, None)
        turn.reply(address, body)


def reply_to_parked_sync(turn: Turn, member: Member, body: SyncGroupResponse) -> bool:
    """Answer the member's parked SyncGroup; False if there is none."""
    if member.parked_sync is None:
        return False
    address, member.parked_sync = member.parked_sync, None
    turn.reply(address, body)
    return True


def remove_member(turn: Turn, member_id: str, reason: str) -> None:
    """Remove a member or a handed-out member id. Sends no response and cancels no timer; ignores an unknown id."""
    group = turn.group.part_as(ClassicGroup)
    member = group.members.get(member_id)
    if member is not None:
        turn.record(MemberRemoved(member_id, member.group_instance_id, reason))
        if group.leader == member_id:
            turn.record(LeaderElected(next(iter(group.members), None)))
    group.withdraw_member_id(member_id)
    group.pending_syncs.pop(member_id, None)


def rebalance_or_complete_join(turn: Turn, reason: str, *, ends_initial_delay: bool = False) -> None:
    """React to a member that joined, changed, left or expired: begin a rebalance, or complete the one in progress.

    ``reason`` goes into the journal if a rebalance begins; ``ends_initial_delay`` is for
    :func:`complete_join_if_all_joined`.
    """
    if turn.group.part_as(ClassicGroup).can_rebalance:
        prepare_rebalance(turn, reason)
    else:
        complete_join_if_all_joined(turn, ends_initial_delay=ends_initial_delay)


def complete_join_if_all_joined(turn: Turn, *, ends_initial_delay: bool = False) -> None:
    """Complete the join that is in progress, if there is one and every member has joined.

    During the initial delay (KIP-134) the join waits for the delay's timer. As in Kafka, only the expiry of a session
    or of a handed-out member id completes it earlier: the caller passes ``ends_initial_delay``.
    """
    group = turn.group.part_as(ClassicGroup)
    if group.state is not State.PREPARING_REBALANCE or not group.all_members_joined:
        return
    if ends_initial_delay or group.previous_state is not State.EMPTY:
        complete_join(turn)


def prepare_rebalance(turn: Turn, reason: str) -> None:
    """Begin a rebalance: every member must send JoinGroup again.

    Members learn of it from the response to their next heartbeat, and those whose SyncGroup is parked from its response
    now. The first rebalance of an Empty group lasts for the initial delay, so that members that start together form one
    generation.
    """
    group = turn.group.part_as(ClassicGroup)
    if group.state is State.COMPLETING_REBALANCE:
        _cancel_parked_syncs(turn, Error.REBALANCE_IN_PROGRESS)
    group.pending_syncs.clear()
    turn.cancel("sync")
    if group.state is State.EMPTY:
        delay = turn.config.group_initial_rebalance_delay_ms
        arm_initial_join(turn, delay, max(group.rebalance_timeout_ms - delay, 0))
        change_state(turn, State.PREPARING_REBALANCE, reason)
        return
    change_state(turn, State.PREPARING_REBALANCE, reason)
    if group.all_members_joined:
        complete_join(turn)
    else:
        arm_join(turn)


def refuse_assignments(turn: Turn, error: Error) -> None:
    """Answer every parked SyncGroup with the error of the leader's, and begin the next rebalance."""
    _cancel_parked_syncs(turn, error)
    prepare_rebalance(turn, f"the assignment of leader {turn.group.part_as(ClassicGroup).leader} is too large")


def _cancel_parked_syncs(turn: Turn, error: Error) -> None:
    group = turn.group.part_as(ClassicGroup)
    if any(member.assignment for member in group.members.values()):
        turn.record(AssignmentChanged({}))
    cancelled = SyncGroupResponse(error_code=error)
    for member in group.members.values():
        if reply_to_parked_sync(turn, member, cancelled):
            arm_session(turn, member)


def complete_join(turn: Turn) -> None:
    """Start a new generation with the members that have joined.

    Dynamic members that have not rejoined are removed; static ones keep their place until their session expires. If no
    member has joined and only static ones are left, none can lead: the join stays open.
    """
    group = turn.group.part_as(ClassicGroup)
    turn.cancel("join")
    for member in list(group.members.values()):
        if not member.is_static and member.parked_join is None:
            turn.cancel_heartbeat(member.member_id)
            remove_member(turn, member.member_id, "did not rejoin within the rebalance timeout")
    if group.members and not _elect_joined_leader(turn):
        arm_join(turn, at_least_ms=ABSENT_MEMBERS_CHECK_MS)
        return
    _start_generation(turn)
    if group.members:
        _announce_generation(turn)


def _elect_joined_leader(turn: Turn) -> bool:
    """Elect a member that has joined if the leader has not; False if no member has joined."""
    group = turn.group.part_as(ClassicGroup)
    if group.leader is not None and group.members[group.leader].parked_join is not None:
        return True
    joined = next((m.member_id for m in group.members.values() if m.parked_join is not None), None)
    if joined is None:
        return False
    turn.record(LeaderElected(joined))
    return True


def _start_generation(turn: Turn) -> None:
    group = turn.group.part_as(ClassicGroup)
    protocol_name = select_protocol(group) if group.members else None
    turn.record(GenerationStarted(group.generation + 1, protocol_name))
    if group.members:
        change_state(turn, State.COMPLETING_REBALANCE, f"generation {group.generation} has its members")
    else:
        change_state(turn, State.EMPTY, "no member is left")
    group.pending_syncs.clear()


def _announce_generation(turn: Turn) -> None:
    group = turn.group.part_as(ClassicGroup)
    for member in group.members.values():
        reply_to_parked_join(turn, member, join_response(group, member))
        arm_session(turn, member)
        member.is_new = False
        group.pending_syncs[member.member_id] = None
    arm_sync(turn)


def join_response(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """The response that announces the current generation to a member; only the leader's lists the members."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=joined_members(group) if member.member_id == group.leader else [],
    )


def joined_members(group: ClassicGroup) -> list[JoinedMember]:
    """The members with their metadata for the chosen protocol, as the leader gets them."""
    return [
        JoinedMember(member.member_id, member.group_instance_id, member.metadata_for(group.protocol_name))
        for member in group.members.values()
    ]


def select_protocol(group: ClassicGroup) -> str:
    """The protocol with the most votes: each member votes for its first protocol that all members support.

    A tie goes to the protocol that comes first in the iteration order of Java's HashMap, in which a broker counts the
    votes, so that a group chooses the same protocol as on a broker.
    """
    candidates = group.protocol_candidates()
    assert candidates, "the members have no protocol in common"
    votes: Counter[str] = Counter()
    for preferred, members in group.member_index.preferences.items():
        votes[next(name for name in preferred if name in candidates)] += members
    return min(votes, key=lambda name: (-votes[name], _java_map_bucket(name)))


def _java_map_bucket(key: str) -> int:
    """The bucket of a key in a java.util.HashMap with the default 16 buckets."""
    hashed = java_string_hash(key) & 0xFFFFFFFF
    return (hashed ^ hashed >> 16) & 15
