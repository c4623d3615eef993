"""Heartbeat: keeps a member's session alive; its response announces a rebalance."""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.timers import arm_session
from coordinator_logic.messages import HeartbeatRequest, HeartbeatResponse
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: HeartbeatRequest) -> None:
    """Restart the member's session; answer REBALANCE_IN_PROGRESS while the group is in PreparingRebalance.

    The generation is checked first: a stale one is answered ILLEGAL_GENERATION during a rebalance, too.
    """
    group = turn.part_or_none(ClassicGroup)
    error = _check(group, body)
    if group is not None and error is Error.NONE:
        arm_session(turn, group.members[body.member_id])
        if group.state is State.PREPARING_REBALANCE:
            error = Error.REBALANCE_IN_PROGRESS
    turn.reply(request.address, HeartbeatResponse(error))


def _check(group: ClassicGroup | None, body: HeartbeatRequest) -> Error:
    if not body.group_id:
        return Error.INVALID_GROUP_ID
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    return group.check_generation(body.member_id, body.group_instance_id, body.generation_id)
