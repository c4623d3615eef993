"""DeleteGroups: delete a group that has no members, with its offsets.

Handed-out member ids do not prevent it. An entry for a group other than the event's key is answered NOT_COORDINATOR.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.messages import DeletedGroup, DeleteGroupsRequest, DeleteGroupsResponse
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: DeleteGroupsRequest) -> None:
    """Delete the group if it is Empty; a repeated name counts once."""
    names = dict.fromkeys(body.groups_names)
    turn.reply(request.address, DeleteGroupsResponse([DeletedGroup(name, _delete(turn, name)) for name in names]))


def _delete(turn: Turn, group_id: str) -> Error:
    if group_id != turn.group_id:
        return Error.NOT_COORDINATOR
    if turn.existing is None:
        return Error.GROUP_ID_NOT_FOUND
    if turn.group.state is not State.EMPTY:
        return Error.NON_EMPTY_GROUP
    turn.delete_group("deleted by a request")
    return Error.NONE


def refuse(body: DeleteGroupsRequest, version: int, error: Error) -> DeleteGroupsResponse:
    """Report one error for the whole request, on every group."""
    return DeleteGroupsResponse([DeletedGroup(name, error) for name in dict.fromkeys(body.groups_names)])
