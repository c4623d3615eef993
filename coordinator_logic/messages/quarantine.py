"""The messages about a quarantined group, whose stored state cannot be read. Kafka's protocol has none of them."""

from coordinator_logic.messages.base import Int16, Int32, Int64, Message

# ---- ReadQuarantinedGroup ------------------------------------------------------------------------------------------


class ReadQuarantinedGroupRequest(Message, frozen=True):
    """Ask why a group is quarantined, and for ``length`` bytes of its stored state from ``offset`` on."""

    offset: Int64 = 0
    length: Int32 = 0


class ReadQuarantinedGroupResponse(Message, frozen=True):
    """The reason, and a page of the stored state, which has ``size`` bytes; a page has at most 1 MiB.

    ``error_code`` is GROUP_ID_NOT_FOUND for a group that does not exist, and INVALID_REQUEST for one that is not
    quarantined.
    """

    error_code: Int16 = 0
    error_message: str | None = None
    reason: str = ""
    format_version: Int16 = -1
    size: Int64 = 0
    data: bytes = b""


# ---- DropQuarantinedGroup ------------------------------------------------------------------------------------------


class DropQuarantinedGroupRequest(Message, frozen=True):
    """Drop the stored state of a quarantined group: the group does not exist then, and can be created again."""

    reason: str = ""


class DropQuarantinedGroupResponse(Message, frozen=True):
    """The result; the error codes are those of :class:`ReadQuarantinedGroupResponse`."""

    error_code: Int16 = 0
    error_message: str | None = None
