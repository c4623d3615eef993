"""Requests of the classic protocol to a consumer group that has members, which go on speaking it.

A classic member joins, syncs and sends heartbeats as in a classic group, but alone: nobody leads, no join waits for
others, and what it gets was computed by the coordinator. Its member epoch is its generation.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from coordinator_logic.apis import JOIN_GROUP_FIRST_VERSION_REQUIRING_MEMBER_ID
from coordinator_logic.assignors.server import Partitions
from coordinator_logic.config import MigrationPolicy
from coordinator_logic.embedded_protocols import ConsumerProtocolError, Subscription, decode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import CONSUMER_PROTOCOL_TYPE
from coordinator_logic.groups.classic.rebalance import prepare_rebalance
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.heartbeat_steps import reconcile_member
from coordinator_logic.groups.consumer.members import (
    ClassicMembership,
    ClassicProtocol,
    ConsumerMember,
    MemberState,
)
from coordinator_logic.groups.consumer.membership import fence_members, replace_member
from coordinator_logic.groups.consumer.pattern_resolution import ResolvedBefore, resolve_patterns_if_needed
from coordinator_logic.groups.consumer.records import member_record
from coordinator_logic.groups.consumer.targets import bump_if_needed, has_changed_topics, update_target
from coordinator_logic.groups.consumer.topics import learn_topics
from coordinator_logic.groups.conversions.consumer_to_classic import downgrade, downgrades_with, encoded_partitions
from coordinator_logic.limits import topics_fit
from coordinator_logic.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeavingMember,
    LeftMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_logic.turn import Turn

# ---- JoinGroup -------------------------------------------------------------------------------------------------


class _Joining(NamedTuple):
    """A classic member that joins: as it was, as it will be, what it owns, and whose place it takes."""

    before: ConsumerMember
    updated: ConsumerMember
    owned: Partitions
    replaces: str | None


def join_consumer_group(
    turn: Turn, consumer: ConsumerGroup, request: Request, body: JoinGroupRequest, new_member_id: str
) -> JoinGroupResponse:
    """Take a classic member in, or one step closer to its target. ``new_member_id`` is for one without a member id."""
    member_id = body.member_id or new_member_id
    refused = _check_join(turn, consumer, request, body, member_id)
    if refused is not Error.NONE:
        named = member_id if refused is Error.MEMBER_ID_REQUIRED else body.member_id
        return JoinGroupResponse(error_code=refused, member_id=named)
    joining = _joining(consumer, request, body, member_id)
    if isinstance(joining, Error):
        return JoinGroupResponse(error_code=joining, member_id=body.member_id)
    epoch = _take_in(turn, consumer, joining, body)
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
    protocols = tuple(ClassicProtocol(each.name, each.metadata) for each in body.protocols)
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


def _take_in(turn: Turn, consumer: ConsumerGroup, joining: _Joining, body: JoinGroupRequest) -> int:
    """Let the member join; return its epoch."""
    before, updated = joining.before, joining.updated
    resolved = ResolvedBefore.of(consumer)
    static = consumer.static_member(updated.group_instance_id)
    takes_last_place = static is not None and downgrades_with(consumer, static, turn.config)
    if joining.replaces is not None and updated.group_instance_id is not None:
        replace_member(turn, updated.group_instance_id, joining.replaces, updated.member_id)
    names_changed = before.subscribed_topic_names != updated.subscribed_topic_names
    changed = names_changed or before.subscribed_topic_regex != ""
    if updated != consumer.members.get(updated.member_id):
        turn.record(member_record(updated))
    learn_topics(turn, consumer, body.topics)
    if takes_last_place:
        return _take_last_place(turn, consumer, joining, changed)
    bump_if_needed(turn, consumer, f"member {updated.member_id} subscribes to other topics" if changed else None)
    update_target(turn, consumer)
    after = reconcile_member(turn, consumer, updated.member_id, joining.owned, subscription_changed=changed)
    resolve_patterns_if_needed(turn, consumer, resolved, has_new_pattern=False)
    return after.epoch


def _take_last_place(turn: Turn, consumer: ConsumerGroup, joining: _Joining, changed: bool) -> int:
    """Make the group a classic group with the member; it rebalances if its target is outdated. Return the epoch."""
    member_id, epoch = joining.updated.member_id, joining.updated.epoch
    is_outdated = changed or has_changed_topics(consumer) or consumer.target_epoch < consumer.epoch
    if not is_outdated:
        epoch = reconcile_member(turn, consumer, member_id, joining.owned, subscription_changed=False).epoch
    downgrade(turn, consumer, [])
    if is_outdated:
        prepare_rebalance(turn, "the group became a classic group with an outdated assignment")
    return epoch


def _joined(turn: Turn, body: JoinGroupRequest, member_id: str, epoch: int) -> JoinGroupResponse:
    if turn.group.consumer is not None:
        turn.cancel_member_join(member_id)
        turn.arm_heartbeat(member_id, body.session_timeout_ms)
        turn.arm_member_sync(member_id, turn.group.consumer.members[member_id].rebalance_timeout_ms)
    return JoinGroupResponse(
        generation_id=epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=body.protocols[0].name,
        member_id=member_id,
    )


# ---- SyncGroup and Heartbeat -----------------------------------------------------------------------------------


def _find_classic(
    consumer: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember | None, Error]:
    """The classic member that sends a request, or the error for it."""
    if instance_id is None:
        member = consumer.members.get(member_id)
    else:
        member = consumer.static_member(instance_id)
        if member is not None and member.member_id != member_id:
            return None, Error.FENCED_INSTANCE_ID
    if member is None or member.classic is None:
        return None, Error.UNKNOWN_MEMBER_ID
    if member.epoch != generation:
        return None, Error.ILLEGAL_GENERATION
    return member, Error.NONE


def sync_with_consumer_group(turn: Turn, consumer: ConsumerGroup, body: SyncGroupRequest) -> SyncGroupResponse:
    """Answer with the partitions that the member may own now."""
    member, error = _find_classic(consumer, body.member_id, body.group_instance_id, body.generation_id)
    if member is None or member.classic is None:
        return SyncGroupResponse(error_code=error)
    protocol = member.classic.protocols[0]
    if body.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or body.protocol_name not in (None, protocol.name):
        return SyncGroupResponse(error_code=Error.INCONSISTENT_GROUP_PROTOCOL)
    # A member that must revoke has joined already: it goes on with that, and then learns of newer targets.
    if consumer.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        turn.arm_member_join_if_absent(member.member_id, member.rebalance_timeout_ms)
        return SyncGroupResponse(error_code=Error.REBALANCE_IN_PROGRESS)
    turn.cancel_member_sync(member.member_id)
    turn.arm_heartbeat(member.member_id, member.classic.session_timeout_ms)
    names = {topic.topic_id: name for name, topic in consumer.topics.items()}
    held = {topic_id: sorted(partitions) for topic_id, partitions in sorted(member.assigned.items())}
    assignment = encoded_partitions(held, names, protocol.metadata)
    return SyncGroupResponse(protocol_type=body.protocol_type, protocol_name=body.protocol_name, assignment=assignment)


def heartbeat_to_consumer_group(turn: Turn, consumer: ConsumerGroup, body: HeartbeatRequest) -> Error:
    """Restart the member's session; REBALANCE_IN_PROGRESS if it has something to gain or to give by joining again."""
    member, error = _find_classic(consumer, body.member_id, body.group_instance_id, body.generation_id)
    if member is None or member.classic is None:
        return error
    turn.arm_heartbeat(member.member_id, member.classic.session_timeout_ms)
    is_waiting = member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(consumer, member)
    if member.epoch < consumer.target_epoch or member.state is MemberState.UNREVOKED_PARTITIONS or is_waiting:
        turn.arm_member_join_if_absent(member.member_id, member.rebalance_timeout_ms)
        return Error.REBALANCE_IN_PROGRESS
    return Error.NONE


def _waits_for_others(consumer: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether another member still holds a partition of its target."""
    return any(
        partition not in member.assigned.get(topic_id, {}) and not consumer.is_free(topic_id, partition)
        for topic_id, partitions in consumer.targets.get(member.member_id, {}).items()
        for partition in partitions
    )


# ---- LeaveGroup ------------------------------------------------------------------------------------------------


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
