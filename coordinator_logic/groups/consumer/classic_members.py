"""Members of a consumer group that speak the classic protocol: who sends a request, and what a member may own."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coordinator_logic.embedded_protocols import Assignment, TopicPartition, encode_assignment
from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ClassicMembership, ConsumerMember


class ClassicSender(NamedTuple):
    """A member that speaks the classic protocol, and what it has brought with JoinGroup."""

    member: ConsumerMember
    classic: ClassicMembership


def find_classic_sender(
    consumer: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> ClassicSender | Error:
    """The classic member that sends a request, or the error for it."""
    if instance_id is None:
        member = consumer.members.get(member_id)
    else:
        member = consumer.static_member(instance_id)
        if member is not None and member.member_id != member_id:
            return Error.FENCED_INSTANCE_ID
    if member is None or member.classic is None:
        return Error.UNKNOWN_MEMBER_ID
    return ClassicSender(member, member.classic) if member.epoch == generation else Error.ILLEGAL_GENERATION


def encoded_partitions(partitions: Mapping[str, Sequence[int]], names: Mapping[str, str], metadata: bytes) -> bytes:
    """Encode partitions, by topic id, in the version of the embedded protocol in which the member subscribes."""
    assigned = [
        TopicPartition(names[topic_id], number)
        for topic_id in partitions
        if topic_id in names
        for number in partitions[topic_id]
    ]
    version = int.from_bytes(metadata[:2], "big", signed=True)
    return encode_assignment(Assignment(sorted(assigned)), max(version, 0))
