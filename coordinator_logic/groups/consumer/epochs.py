"""The checks of a member's epoch in heartbeats and commits."""

from coordinator_logic.assignors.server import Partitions
from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.members import ConsumerMember

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""A static member leaves for a while: it keeps its place and its partitions until its session expires."""


def check_heartbeat_epoch(member: ConsumerMember, received: int, owned: Partitions | None) -> Error:
    """Return FENCED_MEMBER_EPOCH unless the member may send a heartbeat with this epoch.

    The previous epoch is accepted if the member owns nothing but what is assigned to it: then only the response with
    the new epoch was lost. A member that joins again has epoch 0 and is accepted always, as in Kafka 4.3.

    Args:
        member: The member as the group knows it.
        received: The member epoch of the request.
        owned: The partitions that the member owns; None if the request does not say.
    """
    if received in (member.epoch, JOIN_EPOCH):
        return Error.NONE
    response_was_lost = received == member.previous_epoch and owned is not None and member.is_assigned_all(owned)
    return Error.NONE if received < member.epoch and response_was_lost else Error.FENCED_MEMBER_EPOCH


def check_commit_epoch(member: ConsumerMember, received: int, topic_id: str, partition: int) -> Error:
    """Return STALE_MEMBER_EPOCH unless the member may commit an offset of this partition with this epoch.

    An older epoch is accepted if the member has held the partition since then or longer (KIP-1251), also while it
    revokes the partition.
    """
    if received == member.epoch:
        return Error.NONE
    for held in (member.assigned, member.pending_revocation):
        assignment_epoch = held.get(topic_id, {}).get(partition)
        if assignment_epoch is not None and assignment_epoch <= received < member.epoch:
            return Error.NONE
    return Error.STALE_MEMBER_EPOCH
