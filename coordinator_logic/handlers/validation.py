"""Checks that several handlers share."""

from coordinator_logic.errors import Error
from coordinator_logic.group import Group


def check_member(group: Group, member_id: str, group_instance_id: str | None) -> Error:
    """Whether the caller is the member it says it is: NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID (KIP-345).

    Fencing wins over an unknown member id; an unknown instance id is an unknown member, even when the member id
    is right. A static member that gives its member id only passes.
    """
    if group_instance_id is not None:
        holder = group.member_of_instance(group_instance_id)
        if holder is None:
            return Error.UNKNOWN_MEMBER_ID
        if holder.member_id != member_id:
            return Error.FENCED_INSTANCE_ID
    return Error.NONE if member_id in group.members else Error.UNKNOWN_MEMBER_ID


def check_generation(group: Group, member_id: str, group_instance_id: str | None, generation_id: int) -> Error:
    """Whether the caller is a member of the current generation; ILLEGAL_GENERATION if it is of another."""
    error = check_member(group, member_id, group_instance_id)
    if error is Error.NONE and generation_id != group.generation:
        return Error.ILLEGAL_GENERATION
    return error
