"""A heartbeat of a member of the consumer group protocol that joins or stays: the five steps of Kafka's coordinator.

1. The member is created or updated.
2. The group epoch is bumped if the subscription or its topics have changed.
3. The target assignment is computed if the group epoch is ahead of it.
4. The member makes its next step towards the target.
5. It gets its assignment if that has changed, or if its request had all fields.
"""

from collections.abc import Sequence

import msgspec

from coordinator_logic.assignors.server import Partitions
from coordinator_logic.events import Request
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH
from coordinator_logic.groups.consumer.group_config import group_config
from coordinator_logic.groups.consumer.members import ConsumerMember, MemberOutline, MemberState
from coordinator_logic.groups.consumer.rebalance.membership import session_timeout_ms
from coordinator_logic.groups.consumer.rebalance.patterns import ResolvedBefore, resolve_patterns_if_needed
from coordinator_logic.groups.consumer.rebalance.targets import bump_if_needed, update_target
from coordinator_logic.groups.consumer.rebalance.topics import learn_topics
from coordinator_logic.groups.consumer.reconciliation import Target, reconcile
from coordinator_logic.groups.consumer.records import assignment_record, member_record
from coordinator_logic.groups.consumer.timers import REVOCATION, arm_timer, cancel_timer
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicIdPartitions,
)
from coordinator_logic.turn import Turn


def owned_partitions(listed: Sequence[TopicIdPartitions] | None) -> Partitions | None:
    """The partitions in a request, by topic id; None if it does not say."""
    if listed is None:
        return None
    owned: Partitions = {}
    for entry in listed:
        owned[entry.topic_id] = owned.get(entry.topic_id, frozenset()).union(entry.partitions)
    return owned


def updated_member(member: ConsumerMember, request: Request, body: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """The member with the fields of a heartbeat that are not null."""
    names = body.subscribed_topic_names
    regex, timeout = body.subscribed_topic_regex, body.rebalance_timeout_ms
    return msgspec.structs.replace(
        member,
        group_instance_id=member.group_instance_id if body.instance_id is None else body.instance_id,
        rack_id=member.rack_id if body.rack_id is None else body.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        server_assignor=member.server_assignor if body.server_assignor is None else body.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else tuple(sorted(set(names))),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def sender_of_idle_heartbeat(
    consumer: ConsumerGroup, request: Request, body: ConsumerGroupHeartbeatRequest
) -> ConsumerMember | MemberOutline | None:
    """The sender of a heartbeat that can change nothing but its session; None for any other heartbeat.

    Nearly all heartbeats are such. All checks and steps for the others would find nothing to do either, but would look
    at the whole group.
    """
    if (
        body.rebalance_timeout_ms != -1
        or body.topics
        or body.subscribed_topic_names is not None
        or body.subscribed_topic_regex is not None
        or body.rack_id is not None
        or body.server_assignor is not None
    ):
        return None
    epoch = body.member_epoch
    if consumer.epoch != epoch or consumer.refresh_requested:
        return None
    # Patterns are resolved again after a while, with whatever heartbeat comes then.
    if consumer.patterns or consumer.has_unresolved_patterns:
        return None
    member = consumer.outline_of(body.member_id)
    if (
        member is None
        or member.epoch != epoch
        or member.state is not MemberState.STABLE
        or member.classic is not None
        or member.group_instance_id != body.instance_id
        or member.client_id != request.client_id
        or member.client_host != request.client_host
        or member.subscribed_topic_regex
    ):
        return None
    return member


def answer_idle_heartbeat(
    turn: Turn, consumer: ConsumerGroup, request: Request, member: ConsumerMember | MemberOutline
) -> None:
    """Take a heartbeat that changes nothing but its member's session, and answer it."""
    config = turn.config
    session, interval = config.group_consumer_session_timeout_ms, config.group_consumer_heartbeat_interval_ms
    # Nearly no group has a configuration of its own, and nearly all heartbeats come here.
    if turn.group.configs:
        session, interval, _ = group_config(turn)
    interval = _next_heartbeat_ms(turn, consumer, interval, is_reconciled=True)
    turn.arm_heartbeat(member.member_id, session)
    turn.reply(request.address, ConsumerGroupHeartbeatResponse(0, None, member.member_id, member.epoch, interval), 0)


def process_heartbeat(
    turn: Turn,
    request: Request,
    body: ConsumerGroupHeartbeatRequest,
    member: ConsumerMember,
    updated: ConsumerMember,
    owned: Partitions | None,
) -> None:
    """Take a heartbeat that was accepted, and answer it.

    Args:
        turn: The turn of a group that is a consumer group by now.
        request: The request.
        body: Its body.
        member: The member before the request.
        updated: The member with the request's fields.
        owned: The partitions that it owns; None if the request does not say.
    """
    consumer = turn.group.part_as(ConsumerGroup)
    subscription = _Subscription(consumer, member, updated)
    if updated != consumer.members.get(updated.member_id):
        turn.record(member_record(updated))
    learn_topics(turn, consumer, body.topics, updated.subscribed_topic_regex)
    bump_if_needed(turn, consumer, subscription.reason_to_bump)
    update_target(turn, consumer)
    reconciled = reconcile_member(turn, consumer, updated.member_id, owned, subscription_changed=subscription.changed)
    turn.arm_heartbeat(reconciled.member_id, session_timeout_ms(turn, reconciled))
    is_full = body.rebalance_timeout_ms != -1 and owned is not None
    is_full &= body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None
    shows_assignment = body.member_epoch == JOIN_EPOCH or is_full or reconciled.assigned != member.assigned
    turn.reply(
        request.address,
        ConsumerGroupHeartbeatResponse(
            member_id=reconciled.member_id,
            member_epoch=reconciled.epoch,
            heartbeat_interval_ms=_next_heartbeat_ms(
                turn,
                consumer,
                group_config(turn).heartbeat_interval_ms,
                is_reconciled=reconciled.is_reconciled_to(consumer.epoch),
            ),
            assignment=_assignment(reconciled) if shows_assignment else None,
        ),
    )
    resolve_patterns_if_needed(turn, consumer, subscription.resolved, has_new_pattern=subscription.has_new_pattern)


def reconciling_heartbeat_interval_ms(configured_ms: int, batch_interval_ms: int) -> int:
    """The value of ``group.consumer.reconciling.heartbeat.interval.ms`` for a job that starts a batch every so often.

    A heartbeat waits for its batch, and then for the batch's end: two intervals of the batches. librdkafka 2.16 waits
    for one heartbeat interval, and then closes the connection (``rd_kafka_ConsumerGroupHeartbeatRequest``). With a
    shorter interval it would never see an answer, and so never a longer one.
    """
    return max(configured_ms, 2 * batch_interval_ms)


def _next_heartbeat_ms(turn: Turn, consumer: ConsumerGroup, interval: int, *, is_reconciled: bool) -> int:
    """When a member is to send its next heartbeat, in place of after ``interval``: soon, if it may have a step to take.

    For a heartbeat interval after a target was computed, the group counts as one that changes: members often join and
    leave one after the other, and each has yet to hear of the last change.
    """
    if is_reconciled and turn.now >= consumer.target_at + interval:
        return interval
    return min(interval, turn.config.group_consumer_reconciling_heartbeat_interval_ms)


class _Subscription:
    """How a heartbeat changes its member's subscription; to be made before the change."""

    def __init__(self, consumer: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember) -> None:
        self.resolved = ResolvedBefore.of(consumer)
        before, pattern = member.subscribed_topic_regex, updated.subscribed_topic_regex
        names_changed = member.subscribed_topic_names != updated.subscribed_topic_names
        pattern_changed = before != pattern
        self.changed = names_changed or pattern_changed
        self.has_new_pattern = pattern_changed and pattern != "" and not consumer.subscribers_of(pattern)
        # A pattern that has yet to be resolved leads to a new target later.
        pattern_is_known = pattern in consumer.patterns or pattern == ""
        self.reason_to_bump: str | None = None
        if names_changed:
            self.reason_to_bump = f"member {updated.member_id} subscribes to other topics"
        elif pattern_changed and pattern_is_known:
            self.reason_to_bump = f"member {updated.member_id} subscribes with another pattern"


def reconcile_member(
    turn: Turn, consumer: ConsumerGroup, member_id: str, owned: Partitions | None, *, subscription_changed: bool
) -> ConsumerMember:
    """Let a member make its next step towards the group's target; return it after the step."""
    member = consumer.members[member_id]
    if member.is_reconciled_to(consumer.target_epoch) and not subscription_changed:
        return member
    subscriptions = consumer.subscriptions
    target = Target(
        consumer.target_epoch,
        consumer.target_of(member_id),
        topic_ids={topic.topic_id for topic in subscriptions.topics_of(member)},
        subscribes=bool(subscriptions.names_of(member)),
    )
    after = reconcile(member, target, owned, consumer.is_free, subscription_changed=subscription_changed)
    if after == member:
        return member
    turn.record(assignment_record(after, _step_in_words(after)))
    if after.classic is None:
        if after.state is MemberState.UNREVOKED_PARTITIONS:
            arm_timer(turn, REVOCATION, member_id, after.rebalance_timeout_ms, after.epoch)
        else:
            cancel_timer(turn, REVOCATION, member_id)
    return after


def _step_in_words(after: ConsumerMember) -> str:
    match after.state:
        case MemberState.UNREVOKED_PARTITIONS:
            revoked = sum(map(len, after.pending_revocation.values()))
            return f"must revoke partitions first: {revoked}"
        case MemberState.UNRELEASED_PARTITIONS:
            return "waits for partitions that other members have yet to revoke"
        case MemberState.STABLE:
            return "has reached its target"


def _assignment(member: ConsumerMember) -> ConsumerGroupHeartbeatAssignment:
    return ConsumerGroupHeartbeatAssignment(
        [TopicIdPartitions(topic_id, sorted(partitions)) for topic_id, partitions in sorted(member.assigned.items())]
    )
