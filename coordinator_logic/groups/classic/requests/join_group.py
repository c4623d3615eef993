"""JoinGroup: first joins, rejoins, and static members that return."""

import msgspec

from coordinator_logic.apis import (
    JOIN_GROUP_FIRST_VERSION_REQUIRING_MEMBER_ID,
    JOIN_GROUP_FIRST_VERSION_WITH_SKIP_ASSIGNMENT,
)
from coordinator_logic.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from coordinator_logic.errors import Error, Refusal
from coordinator_logic.events import ReplyAddress, Request
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.limits import check_join, has_room_for_member_id
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.classic.rebalance import (
    complete_join_if_all_joined,
    join_response,
    joined_members,
    prepare_rebalance,
    rebalance_or_complete_join,
    remove_member,
    reply_to_parked_join,
    reply_to_parked_sync,
    select_protocol,
)
from coordinator_logic.groups.classic.records import LeaderElected, MemberAdded, MemberUpdated
from coordinator_logic.groups.classic.timers import arm_session
from coordinator_logic.groups.classic_protocol import check_join_request, generated_member_id
from coordinator_logic.groups.group_type import CONVERSIONS
from coordinator_logic.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse
from coordinator_logic.records import StaticMemberReplaced
from coordinator_logic.states import IllegalState, State
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: JoinGroupRequest) -> None:
    """Park the request until the join completes; answer an error, or a member of a complete generation, at once."""
    error = check_join_request(body, turn.config)
    if error is not Error.NONE:
        _fail(turn, request, error, body.member_id)
    elif turn.existing is None and body.member_id:
        _fail(turn, request, Error.UNKNOWN_MEMBER_ID, body.member_id)
    elif turn.existing is not None and not isinstance(turn.existing.part, ClassicGroup):
        _convert(turn, turn.existing, request, body)
    else:
        _join(turn, request, body)


def _convert(turn: Turn, group: Group, request: Request, body: JoinGroupRequest) -> None:
    """Make a group of another type a classic group, if it has a conversion, and join it."""
    conversion = CONVERSIONS.get((group.group_type, ClassicGroup.type_name))
    if conversion is None:
        _fail(turn, request, Error.INCONSISTENT_GROUP_PROTOCOL)
        return
    planned = conversion.plan(group, body, turn.config)
    if isinstance(planned, Refusal):
        _fail(turn, request, planned.error, body.member_id)
        return
    conversion.carry_out(turn, planned)
    _join(turn, request, body)


def _join(turn: Turn, request: Request, body: JoinGroupRequest) -> None:
    config = turn.config
    if (too_large := check_join(turn.part_or_none(ClassicGroup), request, body, config)) is not Error.NONE:
        _fail(turn, request, too_large, body.member_id)
        return
    if turn.existing is None:
        turn.create_group()
    group = turn.group.part_as(ClassicGroup)
    if not _has_room_for(group, body.member_id, config.group_max_size):
        remove_member(turn, body.member_id, "the group has reached its maximum size")
        # A broker leaves the timer armed; it has no effect when it fires.
        turn.cancel_heartbeat(body.member_id)
        _fail(turn, request, Error.GROUP_MAX_SIZE_REACHED)
    elif not group.supports(body.protocol_type, body.protocols):
        _fail(turn, request, Error.INCONSISTENT_GROUP_PROTOCOL, body.member_id)
    elif not body.member_id:
        _join_without_member_id(turn, request, body)
    else:
        _join_with_member_id(turn, request, body)


def _has_room_for(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    member = group.members.get(member_id)
    if group.state is State.EMPTY:
        return True
    if group.state is State.PREPARING_REBALANCE:
        has_joined = member is not None and member.parked_join is not None
        return has_joined or group.member_index.awaiting_join < max_size
    return member is not None or len(group.members) < max_size


# ---- first joins -----------------------------------------------------------------------------------------------


def _join_without_member_id(turn: Turn, request: Request, body: JoinGroupRequest) -> None:
    group = turn.group.part_as(ClassicGroup)
    member_id = generated_member_id(turn, request, body)
    if body.group_instance_id is not None:
        previous = group.member_of_instance(body.group_instance_id)
        if previous is not None:
            _replace_static_member(turn, request, body, previous, member_id)
        else:
            _add_member(turn, request, body, member_id)
    elif request.address.version < JOIN_GROUP_FIRST_VERSION_REQUIRING_MEMBER_ID:
        _add_member(turn, request, body, member_id)
    elif not has_room_for_member_id(group, member_id, turn.config):
        _fail(turn, request, Error.GROUP_MAX_SIZE_REACHED)
    else:
        group.hand_out_member_id(member_id)
        turn.arm_heartbeat(member_id, body.session_timeout_ms)
        _fail(turn, request, Error.MEMBER_ID_REQUIRED, member_id)


def _add_member(turn: Turn, request: Request, body: JoinGroupRequest, member_id: str) -> None:
    group = turn.group.part_as(ClassicGroup)
    if group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY:
        group.new_member_added = True
    turn.record(
        MemberAdded(
            member_id,
            body.group_instance_id,
            request.client_id,
            request.client_host,
            _rebalance_timeout(body),
            body.session_timeout_ms,
            body.protocol_type,
            body.protocols,
        )
    )
    if group.leader is None:
        turn.record(LeaderElected(member_id))
    group.withdraw_member_id(member_id)
    group.member_index.park_join(group.members[member_id], request.address)
    turn.arm_heartbeat(member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete_join(turn, f"member {member_id} joined{_given_reason(body)}")


def _rebalance_timeout(body: JoinGroupRequest) -> int:
    return body.session_timeout_ms if body.rebalance_timeout_ms == -1 else body.rebalance_timeout_ms


def _given_reason(body: JoinGroupRequest) -> str:
    return f": {body.reason}" if body.reason else ""


# ---- rejoins ---------------------------------------------------------------------------------------------------


def _join_with_member_id(turn: Turn, request: Request, body: JoinGroupRequest) -> None:
    group = turn.group.part_as(ClassicGroup)
    if body.member_id in group.pending_joins:
        if body.group_instance_id is not None:
            # A handed-out id belongs to a dynamic member. Kafka, too, treats this as a defect of the client.
            _fail(turn, request, Error.UNKNOWN_SERVER_ERROR)
        else:
            _add_member(turn, request, body, body.member_id)
        return
    error = group.check_member(body.member_id, body.group_instance_id)
    if error is not Error.NONE:
        _fail(turn, request, error, body.member_id)
        return
    member = group.members[body.member_id]
    is_leader = member.member_id == group.leader
    unchanged = member.lists_same_protocols(body.protocols)
    answered_from_generation = unchanged and (
        group.state is State.COMPLETING_REBALANCE or (group.state is State.STABLE and not is_leader)
    )
    if answered_from_generation:
        turn.reply(request.address, join_response(group, member))
        return
    _update_member(turn, request.address, body, member)
    what = "rejoined" if unchanged else "rejoined with other protocols or metadata"
    role = "leader" if is_leader else "member"
    rebalance_or_complete_join(turn, f"{role} {member.member_id} {what}{_given_reason(body)}")


def _update_member(turn: Turn, address: ReplyAddress, body: JoinGroupRequest, member: Member) -> None:
    """Update the member and park its request; as in Kafka, an older parked JoinGroup gets no answer."""
    timeouts = (_rebalance_timeout(body), body.session_timeout_ms)
    if (
        not member.lists_same_protocols(body.protocols)
        or (member.rebalance_timeout_ms, member.session_timeout_ms) != timeouts
    ):
        turn.record(MemberUpdated(member.member_id, *timeouts, body.protocols))
    turn.group.part_as(ClassicGroup).member_index.park_join(member, address)


# ---- static members that return --------------------------------------------------------------------------------


def _replace_static_member(
    turn: Turn, request: Request, body: JoinGroupRequest, old: Member, new_member_id: str
) -> None:
    """Give a static member whose process has restarted a new member id and its old place (KIP-345).

    Raises :class:`IllegalState` in a state in which a group has no members: the stored group is corrupt.
    """
    group = turn.group.part_as(ClassicGroup)
    if group.state not in (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.STABLE):
        raise IllegalState(
            f"group {turn.group_id!r} is {group.state.value} and has the static member {old.group_instance_id!r}"
        )
    old_leader = group.leader
    _fence(turn, old)
    assert old.group_instance_id is not None
    turn.record(StaticMemberReplaced(old.group_instance_id, old.member_id, new_member_id))
    if old_leader == old.member_id:
        turn.record(LeaderElected(new_member_id))
    member = group.members[new_member_id]
    turn.cancel_heartbeat(old.member_id)
    arm_session(turn, member)
    _update_member(turn, request.address, body, member)
    reason = f"static member {old.group_instance_id} returned as {new_member_id}{_given_reason(body)}"
    if group.state is State.STABLE:
        if select_protocol(group) == group.protocol_name:
            _reply_from_stable_generation(turn, request.address, member, old_leader)
        else:
            prepare_rebalance(turn, f"{reason} and changed the vote on the protocol")
    elif group.state is State.COMPLETING_REBALANCE:
        prepare_rebalance(turn, reason)
    else:
        complete_join_if_all_joined(turn)


def _fence(turn: Turn, old: Member) -> None:
    fenced = JoinGroupResponse(error_code=Error.FENCED_INSTANCE_ID, member_id=old.member_id)
    reply_to_parked_join(turn, old, fenced)
    reply_to_parked_sync(turn, old, SyncGroupResponse(error_code=Error.FENCED_INSTANCE_ID))


def _reply_from_stable_generation(turn: Turn, address: ReplyAddress, member: Member, old_leader: str | None) -> None:
    """Answer with the current generation, which continues without a rebalance (KIP-345).

    A leader must not assign again. Version 9 and later have ``skip_assignment`` for that; an older leader gets the old
    leader's member id, and so acts as a follower.
    """
    group = turn.group.part_as(ClassicGroup)
    group.member_index.park_join(member, None)
    if address.version >= JOIN_GROUP_FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
        leads = member.member_id == group.leader
        members = joined_members(group) if leads else []
        answer = msgspec.structs.replace(join_response(group, member), skip_assignment=leads, members=members)
    else:
        answer = msgspec.structs.replace(join_response(group, member), leader=old_leader or "", members=[])
    turn.reply(address, answer)


# ---- answers ---------------------------------------------------------------------------------------------------


def _fail(turn: Turn, request: Request, error: Error, member_id: str = "") -> None:
    turn.reply(request.address, JoinGroupResponse(error_code=error, member_id=member_id))


def refuse(body: JoinGroupRequest, version: int, error: Error) -> JoinGroupResponse:
    """Report one error for the whole request."""
    return JoinGroupResponse(error_code=error, member_id=body.member_id)
