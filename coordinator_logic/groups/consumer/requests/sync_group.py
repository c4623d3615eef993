"""SyncGroup to a consumer group: a member that speaks the classic protocol fetches its assignment."""

from coordinator_logic.embedded_protocols import CONSUMER_PROTOCOL_TYPE
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.classic_protocol import lacks_protocol
from coordinator_logic.groups.consumer.classic_members import encoded_partitions, find_classic_sender
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import MemberState
from coordinator_logic.groups.consumer.timers import MEMBER_SYNC, arm_member_join_if_absent, cancel_timer
from coordinator_logic.messages import SyncGroupRequest, SyncGroupResponse
from coordinator_logic.turn import Turn


def answer(turn: Turn, request: Request, body: SyncGroupRequest) -> bool:
    """Answer with the partitions that the member may own now; False if the request lacks what it must have."""
    if lacks_protocol(body, request.address.version):
        return False
    turn.reply(request.address, _response(turn, body))
    return True


def _response(turn: Turn, body: SyncGroupRequest) -> SyncGroupResponse:
    consumer = turn.group.part_as(ConsumerGroup)
    sender = find_classic_sender(consumer, body.member_id, body.group_instance_id, body.generation_id)
    if isinstance(sender, Error):
        return SyncGroupResponse(error_code=sender)
    member, classic = sender
    protocol = classic.protocols[0]
    if body.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or body.protocol_name not in (None, protocol.name):
        return SyncGroupResponse(error_code=Error.INCONSISTENT_GROUP_PROTOCOL)
    # A member that must revoke has joined already: it goes on with that, and then learns of newer targets.
    if consumer.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        arm_member_join_if_absent(turn, member.member_id, member.rebalance_timeout_ms)
        return SyncGroupResponse(error_code=Error.REBALANCE_IN_PROGRESS)
    cancel_timer(turn, MEMBER_SYNC, member.member_id)
    turn.arm_heartbeat(member.member_id, classic.session_timeout_ms)
    names = {topic.topic_id: name for name, topic in consumer.topics.items()}
    held = {topic_id: sorted(partitions) for topic_id, partitions in sorted(member.assigned.items())}
    assignment = encoded_partitions(held, names, protocol.metadata)
    return SyncGroupResponse(protocol_type=body.protocol_type, protocol_name=body.protocol_name, assignment=assignment)
