"""What requests of the classic protocol say by themselves, whatever the type of the group that they reach.

A classic group and a consumer group answer them, each in its own way.
"""

from collections.abc import Sequence
from uuid import NAMESPACE_OID, uuid5

from coordinator_logic.apis import LEAVE_GROUP_FIRST_VERSION_WITH_MEMBERS, SYNC_GROUP_FIRST_VERSION_WITH_PROTOCOL
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.messages import (
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    Protocol,
    SyncGroupRequest,
)
from coordinator_logic.sizes import any_longer
from coordinator_logic.turn import Turn

# ---- JoinGroup -------------------------------------------------------------------------------------------------


def check_join_request(body: JoinGroupRequest, config: CoordinatorConfig) -> Error:
    """Check what needs no group: INVALID_GROUP_ID or INVALID_SESSION_TIMEOUT."""
    timeouts = range(config.group_min_session_timeout_ms, config.group_max_session_timeout_ms + 1)
    if not body.group_id:
        return Error.INVALID_GROUP_ID
    return Error.NONE if body.session_timeout_ms in timeouts else Error.INVALID_SESSION_TIMEOUT


def identifiers_fit(request: Request, body: JoinGroupRequest, config: CoordinatorConfig) -> bool:
    """Whether the identifiers of a member that joins are short enough to be stored."""
    identifiers = (request.client_id, request.client_host, body.group_instance_id or "", body.protocol_type)
    return not any_longer(identifiers, config.group_max_identifier_bytes)


def protocols_fit(protocols: Sequence[Protocol], config: CoordinatorConfig) -> bool:
    """Whether a member's protocols are few and small enough to be stored."""
    if len(protocols) > config.group_max_protocols:
        return False
    if any_longer([protocol.name for protocol in protocols], config.group_max_identifier_bytes):
        return False
    return max([len(protocol.metadata) for protocol in protocols], default=0) <= config.group_max_metadata_bytes


def generated_member_id(turn: Turn, request: Request, body: JoinGroupRequest) -> str:
    """Generate a member id that is unique, and the same if the batch runs again."""
    place = request.place
    name = f"{turn.config.requests_topic}/{place.partition}/{place.offset}/{place.timestamp}"
    prefix = request.client_id if body.group_instance_id is None else body.group_instance_id
    return f"{prefix}-{uuid5(NAMESPACE_OID, name)}"


# ---- SyncGroup -------------------------------------------------------------------------------------------------


def lacks_protocol(body: SyncGroupRequest, version: int) -> bool:
    """Whether the request lacks the protocol type or name, which its version requires (KIP-559)."""
    lacks = body.protocol_type is None or body.protocol_name is None
    return version >= SYNC_GROUP_FIRST_VERSION_WITH_PROTOCOL and lacks


# ---- LeaveGroup ------------------------------------------------------------------------------------------------


def leaving_members(body: LeaveGroupRequest, version: int) -> list[LeavingMember]:
    """The members that a request names: one, or by KIP-345 several."""
    return body.members if version >= LEAVE_GROUP_FIRST_VERSION_WITH_MEMBERS else [LeavingMember(body.member_id)]


def left_response(entries: Sequence[LeftMember], version: int) -> LeaveGroupResponse:
    """The response with an entry for each member, in the order of :func:`leaving_members`."""
    if version >= LEAVE_GROUP_FIRST_VERSION_WITH_MEMBERS:
        return LeaveGroupResponse(members=list(entries))
    return LeaveGroupResponse(error_code=entries[0].error_code)
