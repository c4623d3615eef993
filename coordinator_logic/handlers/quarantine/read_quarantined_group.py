"""ReadQuarantinedGroup: why a group is quarantined, and its stored bytes."""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.handlers.quarantine.refusal import refusal
from coordinator_logic.messages import ReadQuarantinedGroupRequest, ReadQuarantinedGroupResponse
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: ReadQuarantinedGroupRequest) -> None:
    """Refuse: the group is not quarantined."""
    turn.reply(request.address, ReadQuarantinedGroupResponse(*refusal(turn)))


def refuse(body: ReadQuarantinedGroupRequest, version: int, error: Error) -> ReadQuarantinedGroupResponse:
    """Report one error for the whole request."""
    return ReadQuarantinedGroupResponse(error)
