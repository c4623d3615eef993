"""SyncGroup: every member fetches its assignment; the leader's request brings all of them."""

from coordinator_logic.apis import SYNC_GROUP_FIRST_VERSION_WITH_PROTOCOL
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group, Member
from coordinator_logic.groups.classic.checks import check_generation
from coordinator_logic.groups.consumer.requests.classic_members import sync_with_consumer_group
from coordinator_logic.limits import check_assignments
from coordinator_logic.messages import SyncGroupRequest, SyncGroupResponse
from coordinator_logic.records import AssignmentChanged
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: SyncGroupRequest) -> None:
    """Answer with the stored assignment, or park the request until the leader's arrives."""
    consumer = None if turn.existing is None else turn.existing.consumer
    if consumer is not None and not _lacks_protocol(body, request.address.version):
        turn.reply(request.address, sync_with_consumer_group(turn, consumer, body))
        return
    error = _check(turn.existing, body, request.address.version)
    assignments = {entry.member_id: entry.assignment for entry in body.assignments}
    if error is Error.NONE and _brings_assignments(turn.group, body):
        error = check_assignments(turn.group, assignments, turn.config)
    if error is not Error.NONE:
        turn.reply(request.address, SyncGroupResponse(error_code=error))
        return
    group = turn.group
    member = group.members[body.member_id]
    group.pending_syncs.pop(member.member_id, None)
    if not group.pending_syncs:
        turn.cancel_sync()
    if group.state is State.STABLE:
        turn.reply(request.address, _response(group, member))
        return
    member.parked_sync = request.address
    if _brings_assignments(group, body):
        _store_assignments(turn, assignments)


def _lacks_protocol(body: SyncGroupRequest, version: int) -> bool:
    lacks = body.protocol_type is None or body.protocol_name is None
    return version >= SYNC_GROUP_FIRST_VERSION_WITH_PROTOCOL and lacks


def _check(group: Group | None, body: SyncGroupRequest, version: int) -> Error:
    if _lacks_protocol(body, version):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if not body.group_id:
        return Error.INVALID_GROUP_ID
    if group is None or group.state is State.EMPTY:
        return Error.UNKNOWN_MEMBER_ID
    error = check_generation(group, body.member_id, body.group_instance_id, body.generation_id)
    if error is not Error.NONE:
        return error
    for requested, current in (
        (body.protocol_type, group.protocol_type),
        (body.protocol_name, group.protocol_name),
    ):
        if requested is not None and current is not None and requested != current:
            return Error.INCONSISTENT_GROUP_PROTOCOL
    return Error.REBALANCE_IN_PROGRESS if group.state is State.PREPARING_REBALANCE else Error.NONE


def _brings_assignments(group: Group, body: SyncGroupRequest) -> bool:
    return group.state is State.COMPLETING_REBALANCE and body.member_id == group.leader


def _store_assignments(turn: Turn, assignments: dict[str, bytes]) -> None:
    """Store the leader's assignments and answer every parked SyncGroup; a member that is not listed gets nothing."""
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
    """Report one error for the whole request."""
    return SyncGroupResponse(error_code=error)
