"""Why a group that is not quarantined refuses the APIs for quarantined groups."""

from coordinator_logic.errors import Error
from coordinator_logic.turn import Turn


def refusal(turn: Turn) -> tuple[Error, str]:
    """The error and its message.

    Raises :class:`~coordinator_logic.stored_parts.UnreadablePart` if the group's offsets cannot be read: the
    group is quarantined then.
    """
    if turn.existing is None:
        return Error.GROUP_ID_NOT_FOUND, f"group {turn.group_id!r} does not exist"
    for offsets in turn.existing.offset_stores:
        len(offsets)
    return Error.INVALID_REQUEST, f"group {turn.group_id!r} is not quarantined"
