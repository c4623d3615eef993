"""SyncGroup (API key 14): every member asks for its assignment; the leader brings them all.

v3+: ``group_instance_id`` (KIP-345). v5+: the request names protocol type and name and both are checked
(KIP-559).
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group, Member
from coordinator_logic.handlers.api import Api
from coordinator_logic.handlers.validation import check_generation
from coordinator_logic.messages import SyncGroupRequest, SyncGroupResponse
from coordinator_logic.records import AssignmentChanged
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

FIRST_VERSION_WITH_PROTOCOL = 5


def handle(turn: Turn, request: Request, body: SyncGroupRequest) -> None:
    """Answer with the stored assignment, or park the request until the leader's comes."""
    error = _check(turn.existing, body, request.address.version)
    if error is not Error.NONE:
        turn.reply(request.address, SyncGroupResponse(error_code=error))
        return
    group = turn.group
    member = group.members[body.member_id]
    if member.member_id in group.pending_syncs:
        group.pending_syncs.remove(member.member_id)
    if not group.pending_syncs:
        turn.cancel_sync()
    if group.state is State.STABLE:
        turn.reply(request.address, _response(group, member))
        return
    member.parked_sync = request.address
    if member.member_id == group.leader:
        _stabilise(turn, {entry.member_id: entry.assignment for entry in body.assignments})


def _check(group: Group | None, body: SyncGroupRequest, version: int) -> Error:
    if version >= FIRST_VERSION_WITH_PROTOCOL and (body.protocol_type is None or body.protocol_name is None):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if not body.group_id:
        return Error.INVALID_GROUP_ID
    if group is None or group.state is State.EMPTY:
        return Error.UNKNOWN_MEMBER_ID
    error = check_generation(group, body.member_id, body.group_instance_id, body.generation_id)
    if error is not Error.NONE:
        return error
    for asked, current in (
        (body.protocol_type, group.protocol_type),
        (body.protocol_name, group.protocol_name),
    ):
        if asked is not None and current is not None and asked != current:
            return Error.INCONSISTENT_GROUP_PROTOCOL
    return Error.REBALANCE_IN_PROGRESS if group.state is State.PREPARING_REBALANCE else Error.NONE


def _stabilise(turn: Turn, assignments: dict[str, bytes]) -> None:
    """Take the leader's assignments and answer everybody who waits; who is not named gets an empty one."""
    group = turn.group
    turn.record(AssignmentChanged({member_id: assignments.get(member_id, b"") for member_id in group.members}))
    for member in group.members.values():
        if turn.reply_to_parked_sync(member, _response(group, member)):
            turn.arm_session(member)
    turn.change_state(State.STABLE, f"leader {group.leader} brought the assignment")


def _response(group: Group, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def refuse(body: SyncGroupRequest, version: int, error: Error) -> SyncGroupResponse:
    """One error for the whole request."""
    return SyncGroupResponse(error_code=error)


API = Api("SyncGroup", 14, 0, 5, SyncGroupRequest, SyncGroupResponse, handle, refuse)
