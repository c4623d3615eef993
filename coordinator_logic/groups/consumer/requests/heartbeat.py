"""Heartbeat to a consumer group: keeps the session of a member that speaks the classic protocol alive."""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.consumer.classic_members import find_classic_sender
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember, MemberState
from coordinator_logic.groups.consumer.timers import arm_member_join_if_absent
from coordinator_logic.messages import HeartbeatRequest, HeartbeatResponse
from coordinator_logic.turn import Turn


def answer(turn: Turn, request: Request, body: HeartbeatRequest) -> bool:
    """Restart the member's session; REBALANCE_IN_PROGRESS if it has something to gain or to give by joining again."""
    turn.reply(request.address, HeartbeatResponse(_result(turn, body)))
    return True


def _result(turn: Turn, body: HeartbeatRequest) -> Error:
    consumer = turn.group.part_as(ConsumerGroup)
    sender = find_classic_sender(consumer, body.member_id, body.group_instance_id, body.generation_id)
    if isinstance(sender, Error):
        return sender
    member, classic = sender
    turn.arm_heartbeat(member.member_id, classic.session_timeout_ms)
    is_waiting = member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(consumer, member)
    if member.epoch < consumer.target_epoch or member.state is MemberState.UNREVOKED_PARTITIONS or is_waiting:
        arm_member_join_if_absent(turn, member.member_id, member.rebalance_timeout_ms)
        return Error.REBALANCE_IN_PROGRESS
    return Error.NONE


def _waits_for_others(consumer: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether another member still holds a partition of its target."""
    return any(
        partition not in member.assigned.get(topic_id, {}) and not consumer.is_free(topic_id, partition)
        for topic_id, partitions in consumer.targets.get(member.member_id, {}).items()
        for partition in partitions
    )
