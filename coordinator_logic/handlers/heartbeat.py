"""Heartbeat (API key 12): keeps the session alive; its answer is how a member learns of a rebalance.

v3+: ``group_instance_id`` (KIP-345).
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.handlers.api import Api
from coordinator_logic.handlers.validation import check_generation
from coordinator_logic.messages import HeartbeatRequest, HeartbeatResponse
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: HeartbeatRequest) -> None:
    """Start the member's session anew; REBALANCE_IN_PROGRESS while the members are being gathered.

    The generation is checked first: a stale one is ILLEGAL_GENERATION also during a rebalance.
    """
    error = _check(turn.existing, body)
    if error is Error.NONE:
        turn.arm_session(turn.group.members[body.member_id])
        if turn.group.state is State.PREPARING_REBALANCE:
            error = Error.REBALANCE_IN_PROGRESS
    turn.reply(request.address, HeartbeatResponse(error))


def _check(group: Group | None, body: HeartbeatRequest) -> Error:
    if not body.group_id:
        return Error.INVALID_GROUP_ID
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    return check_generation(group, body.member_id, body.group_instance_id, body.generation_id)


def refuse(body: HeartbeatRequest, version: int, error: Error) -> HeartbeatResponse:
    """One error for the whole request."""
    return HeartbeatResponse(error)


API = Api("Heartbeat", 12, 0, 4, HeartbeatRequest, HeartbeatResponse, handle, refuse)
