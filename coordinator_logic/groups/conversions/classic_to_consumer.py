"""A classic group of consumers that becomes a consumer group when the first member of the newer protocol joins.

Its members stay, with the partitions of their last assignment. They speak the classic protocol as before: they learn
from their next heartbeats that they must join again, and get their share of the new target one by one.
"""

from collections.abc import Mapping, Sequence

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.embedded_protocols import ConsumerProtocolError, decode_assignment, decode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.group import CONSUMER_PROTOCOL_TYPE, Group, Member
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ClassicMembership, ClassicProtocol, ConsumerMember
from coordinator_logic.groups.consumer.records import (
    ConsumerGroupFormed,
    GroupEpochBumped,
    TargetAssignmentChanged,
    TopicsChanged,
    assignment_record,
    member_record,
)
from coordinator_logic.groups.consumer.requests.heartbeat_checks import Refusal
from coordinator_logic.groups.consumer.target_assignment import Topic
from coordinator_logic.messages import JoinGroupResponse, SyncGroupResponse, TopicDescription
from coordinator_logic.turn import Turn


class _NotConvertible(Exception):
    """A member's metadata or assignment cannot be taken over; the message says why."""


def upgraded(group: Group, topics: Sequence[TopicDescription], config: CoordinatorConfig) -> ConsumerGroup | Refusal:
    """Return the consumer group that a classic group with members would become, or why it cannot become one.

    Args:
        group: The classic group, which does not change.
        topics: The topics that the request describes; members keep partitions of these topics only.
        config: The configuration.
    """
    cannot = f"Cannot upgrade classic group {group.group_id} to consumer group because"
    if not config.group_consumer_migration_policy.upgrades:
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} online upgrade is disabled.")
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        what = "the group does not use the consumer embedded protocol."
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} {what}")
    if len(group.members) > config.group_consumer_max_size:
        what = "the group size exceeds the consumer group maximum size."
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} {what}")
    if group.protocol_name is None:
        # A broker fails with an unknown error. The first generation is complete in a few seconds.
        return Refusal(Error.COORDINATOR_NOT_AVAILABLE, f"{cannot} its first generation is not complete yet.")
    known = {topic.name: Topic(topic.topic_id, topic.partitions) for topic in topics}
    try:
        members = [_converted(group, member, known) for member in group.members.values()]
    except (_NotConvertible, ConsumerProtocolError) as reason:
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} {reason}.")
    held = [place for member in members for place in member.held_partitions()]
    if len(held) != len(set(held)):
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} two members have the same partition.")
    epoch = group.generation
    return ConsumerGroup(
        epoch=epoch,
        target_epoch=epoch,
        members={member.member_id: member for member in members},
        targets={
            member.member_id: {each: sorted(held) for each, held in sorted(member.assigned.items())}
            for member in members
        },
        topics={name: known[name] for name in sorted(_names_of(members, known))},
    )


def _names_of(members: Sequence[ConsumerMember], known: Mapping[str, Topic]) -> set[str]:
    """The known topics to which members subscribe, or of which they have partitions."""
    subscribed = {name for member in members for name in member.subscribed_topic_names}
    held = {topic_id for member in members for topic_id in member.assigned}
    return {name for name, topic in known.items() if name in subscribed or topic.topic_id in held}


def _converted(group: Group, member: Member, topics: dict[str, Topic]) -> ConsumerMember:
    subscription = decode_subscription(member.metadata_for(group.protocol_name))
    assignment = decode_assignment(member.assignment)
    if assignment.user_data:
        raise _NotConvertible("an unsupported custom assignor is in use")
    assigned: dict[str, dict[int, int]] = {}
    for name, partition in sorted(assignment.partitions):
        if name in topics:
            assigned.setdefault(topics[name].topic_id, {})[partition] = group.generation
    protocols = tuple(ClassicProtocol(each.name, each.metadata) for each in member.protocols)
    return ConsumerMember(
        member.member_id,
        member.group_instance_id,
        subscription.rack_id or None,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        tuple(sorted(set(subscription.topics))),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=assigned,
        classic=ClassicMembership(member.session_timeout_ms, protocols),
    )


def upgrade(turn: Turn, consumer: ConsumerGroup) -> None:
    """Make the turn's classic group this consumer group, the result of :func:`upgraded`.

    Parked requests are answered REBALANCE_IN_PROGRESS. Handed-out member ids are forgotten.
    """
    group = turn.group
    for member in group.members.values():
        rebalancing = Error.REBALANCE_IN_PROGRESS
        turn.reply_to_parked_join(member, JoinGroupResponse(error_code=rebalancing, member_id=member.member_id))
        turn.reply_to_parked_sync(member, SyncGroupResponse(error_code=rebalancing))
    for member_id in list(group.pending_joins):
        turn.cancel_heartbeat(member_id)
        group.take_back_member_id(member_id)
    group.pending_syncs.clear()
    turn.cancel_join()
    turn.cancel_sync()
    turn.record(ConsumerGroupFormed(consumer.epoch, "a member of the newer protocol joins"))
    for each in consumer.members.values():
        turn.record(member_record(each))
    topics = [TopicDescription(name, topic.topic_id, topic.partitions) for name, topic in consumer.topics.items()]
    turn.record(TopicsChanged(topics, []))
    metadata_hash = consumer.current_metadata_hash()
    turn.record(GroupEpochBumped(consumer.epoch, metadata_hash, "the generation of the classic group continues"))
    turn.record(TargetAssignmentChanged(consumer.epoch, None, dict(consumer.targets)))
    for each in consumer.members.values():
        turn.record(assignment_record(each, "keeps the assignment of its last generation"))
        assert each.classic is not None
        turn.arm_heartbeat(each.member_id, each.classic.session_timeout_ms)
