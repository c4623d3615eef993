"""LeaveGroup to a consumer group: members leave, or an operator removes them, whichever protocol they speak."""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.classic_protocol import leaving_members, left_response
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.rebalance.membership import fence_members
from coordinator_logic.messages import LeaveGroupRequest, LeavingMember, LeftMember
from coordinator_logic.turn import Turn


def answer(turn: Turn, request: Request, body: LeaveGroupRequest) -> bool:
    """Remove the members with one new group epoch; an entry for each in order. False for an empty group id."""
    if not body.group_id:
        return False
    consumer, version = turn.group.part_as(ConsumerGroup), request.address.version
    entries, removed = [], []
    for entry in leaving_members(body, version):
        member_id, error = _find(consumer, entry)
        entries.append(LeftMember(entry.member_id, entry.group_instance_id, error))
        removed += [member_id] if error is Error.NONE else []
    fence_members(turn, list(dict.fromkeys(removed)), "left")
    turn.reply(request.address, left_response(entries, version))
    return True


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
