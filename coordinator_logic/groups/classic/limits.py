"""The limits of what a classic group stores for its members."""

from collections.abc import Mapping

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member, size_of_handed_out_ids, size_of_protocols
from coordinator_logic.groups.classic_protocol import identifiers_fit, protocols_fit
from coordinator_logic.messages import JoinGroupRequest
from coordinator_logic.sizes import utf8_length


def check_join(
    group: ClassicGroup | None, request: Request, body: JoinGroupRequest, config: CoordinatorConfig
) -> Error:
    """Check the sizes of a JoinGroup: INVALID_REQUEST, or GROUP_MAX_SIZE_REACHED if the whole group is too large.

    The identifiers of a member are checked only when it joins, since they do not change. A member that needs no more
    room than before may rejoin even if the group is over its limit.
    """
    member = None if group is None else _member(group, body)
    if member is None and not identifiers_fit(request, body, config):
        return Error.INVALID_REQUEST
    if not protocols_fit(body.protocols, config):
        return Error.INVALID_REQUEST
    if group is None:
        return Error.NONE
    if member is None:
        more = utf8_length(request.client_id + request.client_host) + size_of_protocols(body.protocols)
        if body.member_id in group.pending_joins:
            more -= size_of_handed_out_ids([body.member_id])
    else:
        more = size_of_protocols(body.protocols) - size_of_protocols(member.protocols)
    fits = more <= 0 or group.member_index.size + more <= config.group_max_bytes
    return Error.NONE if fits else Error.GROUP_MAX_SIZE_REACHED


def has_room_for_member_id(group: ClassicGroup, member_id: str, config: CoordinatorConfig) -> bool:
    """Whether the group may hand out this member id beside those that are not used yet."""
    if len(group.pending_joins) >= config.group_max_pending_member_ids:
        return False
    return group.member_index.size + size_of_handed_out_ids([member_id]) <= config.group_max_bytes


def check_assignments(group: ClassicGroup, assignments: Mapping[str, bytes], config: CoordinatorConfig) -> Error:
    """Check the sizes of the assignments that a leader brings: INVALID_REQUEST if they are too large."""
    assigned = [len(assignments.get(member_id, b"")) for member_id in group.members]
    replaced = sum(len(member.assignment) for member in group.members.values())
    if max(assigned) > config.group_max_assignment_bytes:
        return Error.INVALID_REQUEST
    too_large = group.member_index.size - replaced + sum(assigned) > config.group_max_bytes
    return Error.INVALID_REQUEST if too_large else Error.NONE


def _member(group: ClassicGroup, body: JoinGroupRequest) -> Member | None:
    """The member that sends a JoinGroup, or whose place it takes as the same instance."""
    if body.group_instance_id is not None:
        return group.member_of_instance(body.group_instance_id)
    return group.members.get(body.member_id)
