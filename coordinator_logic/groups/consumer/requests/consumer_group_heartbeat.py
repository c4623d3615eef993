"""ConsumerGroupHeartbeat: the one request with which a member joins, stays and leaves (KIP-848)."""

from uuid import NAMESPACE_OID, uuid5

from coordinator_logic.assignors.server import Partitions
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error, Refusal
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH
from coordinator_logic.groups.consumer.limits import check_consumer_heartbeat, check_patterns
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.groups.consumer.patterns import InvalidPattern, check_pattern
from coordinator_logic.groups.consumer.rebalance.heartbeats import (
    answer_idle_heartbeat,
    owned_partitions,
    process_heartbeat,
    sender_of_idle_heartbeat,
    updated_member,
)
from coordinator_logic.groups.consumer.rebalance.membership import Sender, find_sender, leave, replace_member
from coordinator_logic.groups.consumer.requests.heartbeat_checks import check_heartbeat
from coordinator_logic.groups.group_type import CONVERSIONS
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: ConsumerGroupHeartbeatRequest) -> None:
    """Take the member one step closer to the target assignment, or let it leave."""
    consumer = turn.part_or_none(ConsumerGroup)
    member = None if consumer is None else sender_of_idle_heartbeat(consumer, request, body)
    if consumer is not None and member is not None:
        answer_idle_heartbeat(turn, consumer, request, member)
        return
    config = turn.config
    refusal = check_heartbeat(body, request.address.version, config.server_assignors)
    if refusal is None:
        refusal = (
            _leave(turn, request, body) if body.member_epoch < JOIN_EPOCH else _join_or_continue(turn, request, body)
        )
    if refusal is not None:
        answer = ConsumerGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)
        turn.reply(request.address, answer)


def _leave(turn: Turn, request: Request, body: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    if turn.part_or_none(ConsumerGroup) is None:
        return _not_a_consumer_group(turn.existing, f"Group {body.group_id}")
    refusal = leave(turn, body)
    if refusal is None:
        answer = ConsumerGroupHeartbeatResponse(member_id=body.member_id, member_epoch=body.member_epoch)
        turn.reply(request.address, answer)
    return refusal


def _not_a_consumer_group(group: Group | None, missing: str) -> Refusal:
    """The refusal for a group of another type, or for one that does not exist, which it calls ``missing``."""
    what = f"{missing} not found." if group is None else f"Group {group.group_id} is not a consumer group."
    return Refusal(Error.GROUP_ID_NOT_FOUND, what)


def _join_or_continue(turn: Turn, request: Request, body: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    consumer = _group_to_join(turn.existing, body, turn.config)
    if isinstance(consumer, Refusal):
        return consumer
    if _is_full(consumer, body.member_id, turn.config):
        size = turn.config.group_consumer_max_size
        message = f"The consumer group has reached its maximum capacity of {size} members."
        return Refusal(Error.GROUP_MAX_SIZE_REACHED, message)
    member_id = body.member_id or _generate_member_id(turn, request)
    owned = owned_partitions(body.topic_partitions)
    sender = find_sender(consumer, body, member_id, owned)
    if isinstance(sender, Refusal):
        return sender
    updated = updated_member(sender.member, request, body)
    refusal = check_consumer_heartbeat(consumer, sender.member, updated, body, turn.config) or _check_new_pattern(
        consumer, sender.member, updated, turn.config
    )
    if refusal is None:
        _accept(turn, request, body, consumer, sender, updated, owned)
    return refusal


def _group_to_join(
    group: Group | None, body: ConsumerGroupHeartbeatRequest, config: CoordinatorConfig
) -> ConsumerGroup | Refusal:
    """The consumer group; what it would be if a member that joins creates or converts it."""
    if group is not None and isinstance(group.part, ConsumerGroup):
        return group.part
    missing = f"Consumer group {body.group_id}"
    if body.member_epoch != JOIN_EPOCH:
        return _not_a_consumer_group(group, missing)
    if group is None:
        return ConsumerGroup()
    conversion = CONVERSIONS.get((group.group_type, ConsumerGroup.type_name))
    planned = None if conversion is None else conversion.plan(group, body, config)
    return planned if isinstance(planned, ConsumerGroup | Refusal) else _not_a_consumer_group(group, missing)


def _is_full(consumer: ConsumerGroup, member_id: str, config: CoordinatorConfig) -> bool:
    return len(consumer.members) >= config.group_consumer_max_size and member_id not in consumer.members


def _generate_member_id(turn: Turn, request: Request) -> str:
    """Generate a member id that is unique, and the same if the batch runs again; later versions bring their own."""
    place = request.place
    return str(uuid5(NAMESPACE_OID, f"{turn.config.requests_topic}/{place.partition}/{place.offset}/{place.timestamp}"))


def _check_new_pattern(
    consumer: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember, config: CoordinatorConfig
) -> Refusal | None:
    pattern = updated.subscribed_topic_regex
    if pattern == member.subscribed_topic_regex or pattern in consumer.patterns:
        return None
    try:
        check_pattern(pattern, is_bounded=config.bounds_patterns)
    except InvalidPattern as reason:
        return Refusal(Error.INVALID_REGULAR_EXPRESSION, str(reason))
    return check_patterns(consumer, pattern) if pattern and config.bounds_patterns else None


def _accept(
    turn: Turn,
    request: Request,
    body: ConsumerGroupHeartbeatRequest,
    consumer: ConsumerGroup,
    sender: Sender,
    updated: ConsumerMember,
    owned: Partitions | None,
) -> None:
    if turn.existing is None:
        turn.create_group()
    group = turn.group
    if group.part is not consumer:
        CONVERSIONS[group.group_type, ConsumerGroup.type_name].carry_out(turn, consumer)
    if sender.replaces is not None and updated.group_instance_id is not None:
        replace_member(turn, updated.group_instance_id, sender.replaces, updated.member_id)
    process_heartbeat(turn, request, body, sender.member, updated, owned)
