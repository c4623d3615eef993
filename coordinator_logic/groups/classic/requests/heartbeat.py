"""Heartbeat: keeps a member's session alive; its response announces a rebalance."""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.checks import check_generation
from coordinator_logic.groups.consumer.requests.classic_members import heartbeat_to_consumer_group
from coordinator_logic.messages import HeartbeatRequest, HeartbeatResponse
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: HeartbeatRequest) -> None:
    """Restart the member's session; answer REBALANCE_IN_PROGRESS while the group is in PreparingRebalance.

    The generation is checked first: a stale one is answered ILLEGAL_GENERATION during a rebalance, too.
    """
    existing = turn.existing
    if existing is not None and existing.consumer is not None:
        error = heartbeat_to_consumer_group(turn, existing.consumer, body)
        turn.reply(request.address, HeartbeatResponse(error))
        return
    error = _check(existing, body)
    if error is Error.NONE:
        group = turn.group
        turn.arm_session(group.members[body.member_id])
        if group.state is State.PREPARING_REBALANCE:
            error = Error.REBALANCE_IN_PROGRESS
    turn.reply(request.address, HeartbeatResponse(error))


def _check(group: Group | None, body: HeartbeatRequest) -> Error:
    if not body.group_id:
        return Error.INVALID_GROUP_ID
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    return check_generation(group, body.member_id, body.group_instance_id, body.generation_id)


def refuse(body: HeartbeatRequest, version: int, error: Error) -> HeartbeatResponse:
    """Report one error for the whole request."""
    return HeartbeatResponse(error)
