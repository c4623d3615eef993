"""DescribeGroups: the current state of a group and its members.

An entry for a group other than the event's key is answered NOT_COORDINATOR.
"""

from coordinator_logic.apis import DESCRIBE_GROUPS_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.messages import DescribedGroup, DescribedMember, DescribeGroupsRequest, DescribeGroupsResponse
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: DescribeGroupsRequest) -> None:
    """Describe each group, in the request's order."""
    version = request.address.version
    # A group that is named again is not described again: its members could be a million times as long as its name.
    described = {group_id: _describe(turn, group_id, version) for group_id in dict.fromkeys(body.groups)}
    turn.reply(request.address, DescribeGroupsResponse([described[group_id] for group_id in body.groups]))


def _describe(turn: Turn, group_id: str, version: int) -> DescribedGroup:
    if group_id != turn.group_id:
        return DescribedGroup(group_id, Error.NOT_COORDINATOR)
    group = turn.existing
    if group is None:
        return _refused(group_id, version, f"Group {group_id} not found.")
    if not isinstance(group.part, ClassicGroup):
        return _refused(group_id, version, f"Group {group_id} is not a classic group.")
    return described(group_id, group.part)


def _refused(group_id: str, version: int, message: str) -> DescribedGroup:
    if version < DESCRIBE_GROUPS_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
        return DescribedGroup(group_id, group_state=State.DEAD.value)
    return DescribedGroup(group_id, Error.GROUP_ID_NOT_FOUND, message, State.DEAD.value)


def described(group_id: str, group: ClassicGroup) -> DescribedGroup:
    """The answer for a group that exists."""
    return DescribedGroup(
        group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=group.protocol_name or "" if group.state is State.STABLE else "",
        members=[_describe_member(group, member) for member in group.members.values()],
    )


def _describe_member(group: ClassicGroup, member: Member) -> DescribedMember:
    stable = group.state is State.STABLE
    return DescribedMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.metadata_for(group.protocol_name) if stable else b"",
        member.assignment,
    )


def refuse(body: DescribeGroupsRequest, version: int, error: Error) -> DescribeGroupsResponse:
    """Report one error for the whole request, on every group."""
    return DescribeGroupsResponse([DescribedGroup(group_id, error) for group_id in body.groups])
