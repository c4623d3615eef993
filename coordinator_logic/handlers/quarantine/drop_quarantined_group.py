"""DropQuarantinedGroup: drop the stored state of a quarantined group."""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.handlers.quarantine.refusal import refusal
from coordinator_logic.messages import DropQuarantinedGroupRequest, DropQuarantinedGroupResponse
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: DropQuarantinedGroupRequest) -> None:
    """Refuse: the group is not quarantined, and nobody loses a group that works."""
    turn.reply(request.address, DropQuarantinedGroupResponse(*refusal(turn)))


def refuse(body: DropQuarantinedGroupRequest, version: int, error: Error) -> DropQuarantinedGroupResponse:
    """Report one error for the whole request."""
    return DropQuarantinedGroupResponse(error)
