"""ReadQuarantinedGroup and DropQuarantinedGroup to a group that is not quarantined.

A quarantined group answers them in :mod:`coordinator_logic.quarantine`, because only its stored bytes are left.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.messages import (
    DropQuarantinedGroupRequest,
    DropQuarantinedGroupResponse,
    ReadQuarantinedGroupRequest,
    ReadQuarantinedGroupResponse,
)
from coordinator_logic.turn import Turn


def read(turn: Turn, request: Request, body: ReadQuarantinedGroupRequest) -> None:
    """Refuse: the group is not quarantined."""
    turn.reply(request.address, ReadQuarantinedGroupResponse(*_refusal(turn)))


def drop(turn: Turn, request: Request, body: DropQuarantinedGroupRequest) -> None:
    """Refuse: the group is not quarantined, and nobody loses a group that works."""
    turn.reply(request.address, DropQuarantinedGroupResponse(*_refusal(turn)))


def _refusal(turn: Turn) -> tuple[Error, str]:
    """The error and its message.

    Raises :class:`~coordinator_logic.stored_parts.UnreadablePart` if the group's offsets cannot be read: the
    group is quarantined then.
    """
    group = turn.existing
    if group is None:
        return Error.GROUP_ID_NOT_FOUND, f"group {turn.group_id!r} does not exist"
    list(group.committed_offsets())
    return Error.INVALID_REQUEST, f"group {turn.group_id!r} is not quarantined"
