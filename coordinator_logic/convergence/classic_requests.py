"""Requests of the classic protocol to a consumer group that has members."""

from collections.abc import Sequence

from coordinator_logic.consumer_group.data import ConsumerGroup
from coordinator_logic.convergence.membership import fence_members
from coordinator_logic.errors import Error
from coordinator_logic.messages import LeavingMember, LeftMember
from coordinator_logic.turn import Turn


def leave_consumer_group(turn: Turn, consumer: ConsumerGroup, leaving: Sequence[LeavingMember]) -> list[LeftMember]:
    """Remove members that leave or that an operator removes, with one new group epoch; an entry for each in order."""
    entries, removed = [], []
    for entry in leaving:
        member_id, error = _find(consumer, entry)
        entries.append(LeftMember(entry.member_id, entry.group_instance_id, error))
        removed += [member_id] if error is Error.NONE else []
    fence_members(turn, list(dict.fromkeys(removed)), "left")
    return entries


def _find(consumer: ConsumerGroup, entry: LeavingMember) -> tuple[str, Error]:
    if entry.group_instance_id is None:
        known = entry.member_id in consumer.members
        return entry.member_id, Error.NONE if known else Error.UNKNOWN_MEMBER_ID
    static = consumer.static_member(entry.group_instance_id)
    if static is None:
        return "", Error.UNKNOWN_MEMBER_ID
    if entry.member_id not in ("", static.member_id):
        return "", Error.FENCED_INSTANCE_ID
    return static.member_id, Error.NONE
