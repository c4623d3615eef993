"""Checks that several handlers share."""

from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.states import State


def check_member(group: Group, member_id: str, group_instance_id: str | None) -> Error:
    """Check that the sender is the member that it claims to be: UNKNOWN_MEMBER_ID or, by KIP-345, FENCED_INSTANCE_ID.

    Fencing takes precedence over an unknown member id. An unknown instance id is an unknown member, even with a valid
    member id. A static member passes with its member id alone.
    """
    member = group.members.get(member_id)
    if member is not None and (group_instance_id is None or group_instance_id == member.group_instance_id):
        return Error.NONE
    if group_instance_id is not None:
        owner = group.member_of_instance(group_instance_id)
        if owner is None:
            return Error.UNKNOWN_MEMBER_ID
        if owner.member_id != member_id:
            return Error.FENCED_INSTANCE_ID
    return Error.UNKNOWN_MEMBER_ID


def check_generation(group: Group, member_id: str, group_instance_id: str | None, generation_id: int) -> Error:
    """Check that the sender is a member of the current generation; ILLEGAL_GENERATION for another generation."""
    error = check_member(group, member_id, group_instance_id)
    if error is Error.NONE and generation_id != group.generation:
        return Error.ILLEGAL_GENERATION
    return error


def check_committer(
    group: Group | None, member_id: str, group_instance_id: str | None, generation_id: int, *, absent_group: Error
) -> Error:
    """Check that the sender may commit: as a member of the current generation, or while the group has no members.

    A commit without a member names no generation (a negative one). It is accepted only if the group is Empty or does
    not exist, so that nothing but the group's own members moves the offsets of an active group. ``absent_group`` is
    the error for a commit that names a generation of a group that does not exist.
    """
    if generation_id < 0 and (group is None or group.state is State.EMPTY):
        return Error.NONE
    if group is None:
        return absent_group
    return check_generation(group, member_id, group_instance_id, generation_id)
