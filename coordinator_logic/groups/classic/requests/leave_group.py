"""LeaveGroup: members leave, or an operator removes them.

v0-2 names one member, whose error is the response's. v3+ (KIP-345) names several, by member id or instance id, and
has an error for each.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.rebalance import rebalance_or_complete_join, remove_member, reply_to_parked_join
from coordinator_logic.groups.classic_protocol import leaving_members, left_response
from coordinator_logic.messages import (
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
)
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: LeaveGroupRequest) -> None:
    """Remove the members in order, then rebalance once; an entry for an unknown member gets its own error."""
    version = request.address.version
    if not body.group_id:
        turn.reply(request.address, LeaveGroupResponse(Error.INVALID_GROUP_ID))
        return
    entries = _leave(turn, leaving_members(body, version))
    turn.reply(request.address, left_response(entries, version))


def _leave(turn: Turn, leaving: list[LeavingMember]) -> list[LeftMember]:
    entries = [LeftMember(entry.member_id, entry.group_instance_id, _remove(turn, entry)) for entry in leaving]
    left = [entry for entry in entries if entry.error_code == Error.NONE]
    if left and turn.group.state is not State.EMPTY:
        names = ", ".join(entry.member_id or str(entry.group_instance_id) for entry in left)
        rebalance_or_complete_join(turn, f"left the group: {names}")
    return entries


def _remove(turn: Turn, entry: LeavingMember) -> Error:
    group = turn.part_or_none(ClassicGroup)
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    member_id = entry.member_id
    if member_id in group.pending_joins:
        turn.cancel_heartbeat(member_id)
        remove_member(turn, member_id, "left")
        return Error.NONE
    if not member_id and entry.group_instance_id is not None:
        owner = group.member_of_instance(entry.group_instance_id)
        member_id = owner.member_id if owner else ""
    error = group.check_member(member_id, entry.group_instance_id)
    if error is Error.NONE:
        turn.cancel_heartbeat(member_id)
        unknown = JoinGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID)
        reply_to_parked_join(turn, group.members[member_id], unknown)
        remove_member(turn, member_id, f"left: {entry.reason}" if entry.reason else "left")
    return error
