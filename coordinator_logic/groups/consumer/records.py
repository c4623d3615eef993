"""The records of what changes in a consumer group, and the only code that applies them.

They correspond to the records of a broker's coordinator, except that a broker reads topics from its own metadata.
"""

import msgspec

from coordinator_logic.groups.consumer.data import FIRST_EPOCH, ConsumerGroup, ResolvedPattern
from coordinator_logic.groups.consumer.members import (
    AssignedPartitions,
    ClassicMembership,
    ClassicProtocol,
    ConsumerMember,
    MemberState,
)
from coordinator_logic.groups.consumer.target_assignment import Topic
from coordinator_logic.messages import Message, Protocol, TopicDescription
from coordinator_logic.states import State


class ConsumerGroupFormed(Message, frozen=True, tag_field="type"):
    """The group, which is new or was a classic one, is a consumer group from now on, with this epoch."""

    epoch: int = FIRST_EPOCH
    reason: str = ""


class ClassicGroupFormed(Message, frozen=True, tag_field="type"):
    """The group, which was a consumer group, is a classic group from now on, without members and with generation 0.

    The records of its members and its generation follow if it goes on in the state ``state``.
    """

    reason: str
    state: str = State.EMPTY.value


class ClassicMember(Message, frozen=True):
    """What a member that speaks the classic protocol has brought with JoinGroup."""

    session_timeout_ms: int
    protocols: list[Protocol]


class ConsumerMemberChanged(Message, frozen=True, tag_field="type"):
    """A member joined a consumer group, or changed its subscription or itself; these are all its fields.

    ``classic`` is null for a member that speaks the newer protocol.
    """

    member_id: str
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str
    server_assignor: str | None
    classic: ClassicMember | None = None


class TopicsChanged(Message, frozen=True, tag_field="type"):
    """The group learned that topics exist, have more partitions or another id, or that they were deleted."""

    described: list[TopicDescription]
    deleted: list[str]


class PatternsResolved(Message, frozen=True, tag_field="type"):
    """The topics that each pattern of the group matches."""

    patterns: dict[str, list[str]]


class GroupEpochBumped(Message, frozen=True, tag_field="type"):
    """The group needs a new target assignment; ``metadata_hash`` stands for the topics to which it subscribes."""

    epoch: int
    metadata_hash: str
    reason: str


class TargetAssignmentChanged(Message, frozen=True, tag_field="type"):
    """An assignor computed the target for a group epoch.

    ``targets`` has the members whose target changed: by member id, topic id, the partitions. ``assignor`` is null if
    they are the assignment of a classic group, which the group was before.
    """

    epoch: int
    assignor: str | None
    targets: dict[str, dict[str, list[int]]]


class MemberAssignmentChanged(Message, frozen=True, tag_field="type"):
    """A member made a step towards its target, left for a while (epoch -2), or was converted.

    ``assigned`` and ``pending_revocation`` give by topic id and partition the member epoch at which the member got it.
    """

    member_id: str
    epoch: int
    previous_epoch: int
    state: str
    assigned: AssignedPartitions
    pending_revocation: AssignedPartitions
    reason: str


ConsumerGroupRecord = (
    ConsumerGroupFormed
    | ConsumerMemberChanged
    | TopicsChanged
    | PatternsResolved
    | GroupEpochBumped
    | TargetAssignmentChanged
    | MemberAssignmentChanged
)


def member_record(member: ConsumerMember) -> ConsumerMemberChanged:
    """The record of a member's fields other than its assignment."""
    classic = member.classic
    return ConsumerMemberChanged(
        member.member_id,
        member.group_instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        list(member.subscribed_topic_names),
        member.subscribed_topic_regex,
        member.server_assignor,
        None
        if classic is None
        else ClassicMember(classic.session_timeout_ms, [Protocol(p.name, p.metadata) for p in classic.protocols]),
    )


def assignment_record(member: ConsumerMember, reason: str) -> MemberAssignmentChanged:
    """The record of a member's epochs and partitions."""
    return MemberAssignmentChanged(
        member.member_id,
        member.epoch,
        member.previous_epoch,
        member.state.value,
        member.assigned,
        member.pending_revocation,
        reason,
    )


def apply_to_consumer_group(consumer: ConsumerGroup, record: ConsumerGroupRecord, timestamp: int) -> None:
    """Apply a record other than :class:`ConsumerGroupFormed`; ``timestamp`` is its entry's, ms since the epoch.

    Raises ``KeyError`` if a record names a member that does not exist.
    """
    match record:
        case ConsumerMemberChanged():
            _change_member(consumer, record)
        case MemberAssignmentChanged():
            _change_assignment(consumer, record)
        case TargetAssignmentChanged():
            consumer.target_epoch, consumer.target_at = record.epoch, 0 if record.assignor is None else timestamp
            consumer.targets.update(record.targets)
        case GroupEpochBumped():
            consumer.epoch, consumer.metadata_hash = record.epoch, record.metadata_hash
        case TopicsChanged():
            _change_topics(consumer, record)
        case PatternsResolved():
            for pattern, topics in record.patterns.items():
                consumer.patterns[pattern] = ResolvedPattern(tuple(topics), timestamp)
            consumer.forget_subscriptions()


def replace_static_member(consumer: ConsumerGroup, old_member_id: str, new_member_id: str) -> None:
    """Give a static member a new id; it keeps its partitions and its target, and begins with epoch 0 again."""
    target = consumer.targets.get(old_member_id, {})
    old = consumer.remove(old_member_id)
    consumer.targets[new_member_id] = target
    consumer.put(msgspec.structs.replace(old, member_id=new_member_id, epoch=0, previous_epoch=0))


def remove_member(consumer: ConsumerGroup, member_id: str) -> None:
    """Remove a member, and its pattern if no other member has it. Raises ``KeyError`` if there is none."""
    removed = consumer.remove(member_id)
    _forget_pattern(consumer, removed.subscribed_topic_regex)


def _change_member(consumer: ConsumerGroup, record: ConsumerMemberChanged) -> None:
    old = consumer.members.get(record.member_id) or ConsumerMember(record.member_id)
    classic = record.classic
    consumer.put(
        msgspec.structs.replace(
            old,
            group_instance_id=record.group_instance_id,
            rack_id=record.rack_id,
            client_id=record.client_id,
            client_host=record.client_host,
            rebalance_timeout_ms=record.rebalance_timeout_ms,
            subscribed_topic_names=tuple(record.subscribed_topic_names),
            subscribed_topic_regex=record.subscribed_topic_regex,
            server_assignor=record.server_assignor,
            classic=None
            if classic is None
            else ClassicMembership(
                classic.session_timeout_ms, tuple(ClassicProtocol(p.name, p.metadata) for p in classic.protocols)
            ),
        )
    )
    if old.subscribed_topic_regex != record.subscribed_topic_regex:
        _forget_pattern(consumer, old.subscribed_topic_regex)


def _forget_pattern(consumer: ConsumerGroup, pattern: str) -> None:
    if pattern in consumer.patterns and not consumer.subscribers_of(pattern):
        del consumer.patterns[pattern]
        consumer.forget_subscriptions()


def _change_assignment(consumer: ConsumerGroup, record: MemberAssignmentChanged) -> None:
    consumer.put(
        msgspec.structs.replace(
            consumer.members[record.member_id],
            epoch=record.epoch,
            previous_epoch=record.previous_epoch,
            state=MemberState(record.state),
            assigned=record.assigned,
            pending_revocation=record.pending_revocation,
        )
    )


def _change_topics(consumer: ConsumerGroup, record: TopicsChanged) -> None:
    for name in record.deleted:
        consumer.topics.pop(name, None)
    for topic in record.described:
        consumer.topics[topic.name] = Topic(topic.topic_id, topic.partitions)
    changed = {*record.deleted, *(topic.name for topic in record.described)}
    if not changed.isdisjoint(consumer.subscribed_topics):
        consumer.refresh_requested = True
