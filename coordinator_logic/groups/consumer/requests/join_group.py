"""JoinGroup to a consumer group that has members: a member that speaks the classic protocol joins.

It joins, syncs and sends heartbeats as in a classic group, but alone: nobody leads, no join waits for others, and what
it gets was computed by the coordinator. Its member epoch is its generation.
"""

from typing import NamedTuple

import msgspec

from coordinator_logic.apis import JOIN_GROUP_FIRST_VERSION_REQUIRING_MEMBER_ID
from coordinator_logic.assignors.server import Partitions
from coordinator_logic.config import MigrationPolicy
from coordinator_logic.embedded_protocols import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerProtocolError,
    Subscription,
    decode_subscription,
)
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.classic_protocol import (
    check_join_request,
    generated_member_id,
    identifiers_fit,
    protocols_fit,
)
from coordinator_logic.groups.consumer.conversion import DOWNGRADES, Downgrade
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.limits import topics_fit
from coordinator_logic.groups.consumer.members import ClassicMembership, ConsumerMember
from coordinator_logic.groups.consumer.rebalance.heartbeats import reconcile_member
from coordinator_logic.groups.consumer.rebalance.membership import replace_member
from coordinator_logic.groups.consumer.rebalance.patterns import ResolvedBefore, resolve_patterns_if_needed
from coordinator_logic.groups.consumer.rebalance.targets import bump_if_needed, has_changed_topics, update_target
from coordinator_logic.groups.consumer.rebalance.topics import learn_topics
from coordinator_logic.groups.consumer.records import member_record
from coordinator_logic.groups.consumer.timers import MEMBER_JOIN, MEMBER_SYNC, arm_timer, cancel_timer
from coordinator_logic.messages import JoinGroupRequest, JoinGroupResponse
from coordinator_logic.turn import Turn


def answer(turn: Turn, request: Request, body: JoinGroupRequest) -> bool:
    """Take a classic member in, or one step closer to its target; False if the group has no members."""
    consumer = turn.group.part_as(ConsumerGroup)
    if not consumer.members:
        return False
    error = check_join_request(body, turn.config)
    if error is not Error.NONE:
        turn.reply(request.address, JoinGroupResponse(error_code=error, member_id=body.member_id))
        return True
    turn.reply(request.address, _join(turn, consumer, request, body))
    return True


class _Joining(NamedTuple):
    """A classic member that joins: as it was, as it will be, what it owns, and whose place it takes."""

    before: ConsumerMember
    updated: ConsumerMember
    owned: Partitions
    replaces: str | None


def _join(turn: Turn, consumer: ConsumerGroup, request: Request, body: JoinGroupRequest) -> JoinGroupResponse:
    """Let the member join. As in Kafka, what the group refuses names no member, but for the id that is handed out."""
    if not (identifiers_fit(request, body, turn.config) and protocols_fit(body.protocols, turn.config)):
        return JoinGroupResponse(error_code=Error.INVALID_REQUEST)
    member_id = body.member_id or generated_member_id(turn, request, body)
    refused = _check_join(turn, consumer, request, body, member_id)
    if refused is not Error.NONE:
        return JoinGroupResponse(error_code=refused, member_id=member_id if refused is Error.MEMBER_ID_REQUIRED else "")
    joining = _joining(consumer, request, body, member_id)
    if isinstance(joining, Error):
        return JoinGroupResponse(error_code=joining)
    epoch = _let_join(turn, consumer, joining, body)
    return _joined(turn, body, joining.updated.member_id, epoch)


def _check_join(turn: Turn, consumer: ConsumerGroup, request: Request, body: JoinGroupRequest, member_id: str) -> Error:
    if turn.config.group_consumer_migration_policy is MigrationPolicy.DISABLED:
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if len(consumer.members) >= turn.config.group_consumer_max_size and member_id not in consumer.members:
        return Error.GROUP_MAX_SIZE_REACHED
    if body.protocol_type != CONSUMER_PROTOCOL_TYPE or not _shares_a_protocol(consumer, body):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    is_dynamic_and_new = body.group_instance_id is None and not body.member_id
    if is_dynamic_and_new and request.address.version >= JOIN_GROUP_FIRST_VERSION_REQUIRING_MEMBER_ID:
        return Error.MEMBER_ID_REQUIRED
    return Error.NONE if topics_fit(consumer, body.topics) else Error.INVALID_REQUEST


def _shares_a_protocol(consumer: ConsumerGroup, body: JoinGroupRequest) -> bool:
    """Whether all classic members list one of the protocols of the member that joins."""
    listed = [{each.name for each in m.classic.protocols} for m in consumer.members.values() if m.classic is not None]
    return any(all(protocol.name in names for names in listed) for protocol in body.protocols)


def _joining(consumer: ConsumerGroup, request: Request, body: JoinGroupRequest, member_id: str) -> _Joining | Error:
    before: ConsumerMember | None = consumer.members.get(member_id)
    replaces = None
    if body.group_instance_id is not None:
        static = consumer.static_member(body.group_instance_id)
        if body.member_id:
            if static is None:
                return Error.UNKNOWN_MEMBER_ID
            if static.member_id != body.member_id:
                return Error.FENCED_INSTANCE_ID
        elif static is not None:
            before = msgspec.structs.replace(static, member_id=member_id, epoch=0, previous_epoch=0)
            replaces = static.member_id
    before = before or ConsumerMember(member_id)
    try:
        subscription = decode_subscription(body.protocols[0].metadata)
    except ConsumerProtocolError:
        return Error.UNKNOWN_SERVER_ERROR
    updated = _updated(before, request, body, subscription)
    return _Joining(before, updated, _owned(consumer, body, subscription), replaces)


def _updated(
    member: ConsumerMember, request: Request, body: JoinGroupRequest, subscription: Subscription
) -> ConsumerMember:
    protocols = tuple(body.protocols)
    timeout = body.rebalance_timeout_ms
    return msgspec.structs.replace(
        member,
        group_instance_id=body.group_instance_id or member.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        subscribed_topic_regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMembership(body.session_timeout_ms, protocols),
    )


def _owned(consumer: ConsumerGroup, body: JoinGroupRequest, subscription: Subscription) -> Partitions:
    ids = {name: topic.topic_id for name, topic in consumer.topics.items()}
    ids |= {topic.name: topic.topic_id for topic in body.topics}
    owned: Partitions = {}
    for name, partition in subscription.owned_partitions:
        if name in ids:
            owned[ids[name]] = owned.get(ids[name], frozenset()) | {partition}
    return owned


def _let_join(turn: Turn, consumer: ConsumerGroup, joining: _Joining, body: JoinGroupRequest) -> int:
    """Let the member join; return its epoch."""
    before, updated = joining.before, joining.updated
    resolved = ResolvedBefore.of(consumer)
    static = consumer.static_member(updated.group_instance_id)
    conversion = None
    if static is not None:
        conversion = next((each for each in DOWNGRADES if each.happens_with(consumer, static, turn.config)), None)
    if joining.replaces is not None and updated.group_instance_id is not None:
        replace_member(turn, updated.group_instance_id, joining.replaces, updated.member_id)
    names_changed = before.subscribed_topic_names != updated.subscribed_topic_names
    changed = names_changed or before.subscribed_topic_regex != ""
    if updated != consumer.members.get(updated.member_id):
        turn.record(member_record(updated))
    learn_topics(turn, consumer, body.topics)
    if conversion is not None:
        return _downgrade(turn, consumer, joining, changed, conversion)
    bump_if_needed(turn, consumer, f"member {updated.member_id} subscribes to other topics" if changed else None)
    update_target(turn, consumer)
    after = reconcile_member(turn, consumer, updated.member_id, joining.owned, subscription_changed=changed)
    resolve_patterns_if_needed(turn, consumer, resolved, has_new_pattern=False)
    return after.epoch


def _downgrade(turn: Turn, consumer: ConsumerGroup, joining: _Joining, changed: bool, conversion: Downgrade) -> int:
    """Convert the group with the member; it rebalances if its target is outdated. Return the epoch."""
    member_id, epoch = joining.updated.member_id, joining.updated.epoch
    is_outdated = changed or has_changed_topics(consumer) or consumer.target_epoch < consumer.epoch
    if not is_outdated:
        epoch = reconcile_member(turn, consumer, member_id, joining.owned, subscription_changed=False).epoch
    conversion.downgrade(turn, consumer, " with an outdated assignment" if is_outdated else None)
    return epoch


def _joined(turn: Turn, body: JoinGroupRequest, member_id: str, epoch: int) -> JoinGroupResponse:
    consumer = turn.part_or_none(ConsumerGroup)
    if consumer is not None:
        cancel_timer(turn, MEMBER_JOIN, member_id)
        turn.arm_heartbeat(member_id, body.session_timeout_ms)
        arm_timer(turn, MEMBER_SYNC, member_id, consumer.members[member_id].rebalance_timeout_ms)
    return JoinGroupResponse(
        generation_id=epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=body.protocols[0].name,
        member_id=member_id,
    )
