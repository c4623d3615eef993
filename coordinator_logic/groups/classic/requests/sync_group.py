"""SyncGroup: every member fetches its assignment; the leader's request brings all of them."""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.limits import check_assignments
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.classic.rebalance import change_state, refuse_assignments, reply_to_parked_sync
from coordinator_logic.groups.classic.records import AssignmentChanged
from coordinator_logic.groups.classic.timers import arm_session
from coordinator_logic.groups.classic_protocol import lacks_protocol
from coordinator_logic.messages import SyncGroupRequest, SyncGroupResponse
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: SyncGroupRequest) -> None:
    """Answer with the stored assignment, or park the request until the leader's arrives.

    If the leader's assignments are too large, the error reaches all members whose requests are parked, as in a broker,
    and the next rebalance begins.
    """
    group = turn.part_or_none(ClassicGroup)
    error = _check(group, body, request.address.version)
    assignments = {entry.member_id: entry.assignment for entry in body.assignments}
    if group is None or error is not Error.NONE:
        turn.reply(request.address, SyncGroupResponse(error_code=error))
        return
    brings_assignments = _brings_assignments(group, body)
    if brings_assignments:
        too_large = body.assignments_too_large
        error = Error.UNKNOWN_SERVER_ERROR if too_large else check_assignments(group, assignments, turn.config)
    if error is not Error.NONE:
        turn.reply(request.address, SyncGroupResponse(error_code=error))
        # Earlier releases let the followers wait for the leader's next attempt.
        if turn.config.logic_version:
            refuse_assignments(turn, error)
        return
    member = group.members[body.member_id]
    group.pending_syncs.pop(member.member_id, None)
    if not group.pending_syncs:
        turn.cancel("sync")
    if group.state is State.STABLE:
        turn.reply(request.address, _response(group, member))
        return
    member.parked_sync = request.address
    if brings_assignments:
        _store_assignments(turn, assignments)


def _check(group: ClassicGroup | None, body: SyncGroupRequest, version: int) -> Error:
    if lacks_protocol(body, version):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if not body.group_id:
        return Error.INVALID_GROUP_ID
    if group is None or group.state is State.EMPTY:
        return Error.UNKNOWN_MEMBER_ID
    error = group.check_generation(body.member_id, body.group_instance_id, body.generation_id)
    if error is not Error.NONE:
        return error
    for requested, current in (
        (body.protocol_type, group.protocol_type),
        (body.protocol_name, group.protocol_name),
    ):
        if requested is not None and current is not None and requested != current:
            return Error.INCONSISTENT_GROUP_PROTOCOL
    return Error.REBALANCE_IN_PROGRESS if group.state is State.PREPARING_REBALANCE else Error.NONE


def _brings_assignments(group: ClassicGroup, body: SyncGroupRequest) -> bool:
    return group.state is State.COMPLETING_REBALANCE and body.member_id == group.leader


def _store_assignments(turn: Turn, assignments: dict[str, bytes]) -> None:
    """Store the leader's assignments and answer every parked SyncGroup; a member that is not listed gets nothing."""
    group = turn.group.part_as(ClassicGroup)
    turn.record(AssignmentChanged({member_id: assignments.get(member_id, b"") for member_id in group.members}))
    for member in group.members.values():
        if reply_to_parked_sync(turn, member, _response(group, member)):
            arm_session(turn, member)
    change_state(turn, State.STABLE, f"leader {group.leader} brought the assignment")


def _response(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )
