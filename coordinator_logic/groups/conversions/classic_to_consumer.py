"""A classic group becomes a consumer group when the first member of the consumer group protocol joins.

If it is a group of consumers, its members stay, with the partitions of their last assignment. They speak the classic
protocol as before: they learn from their next heartbeats that they must join again, and get their share of the new
target one by one.
"""

from collections.abc import Mapping, Sequence

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.embedded_protocols import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerProtocolError,
    decode_assignment,
    decode_subscription,
)
from coordinator_logic.errors import Error, Refusal
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.classic.rebalance import reply_to_parked_join, reply_to_parked_sync
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ClassicMembership, ConsumerMember
from coordinator_logic.groups.consumer.records import (
    ConsumerGroupFormed,
    GroupEpochBumped,
    TargetAssignmentChanged,
    TopicsChanged,
    assignment_record,
    member_record,
)
from coordinator_logic.groups.consumer.target_assignment import Topic
from coordinator_logic.groups.conversions import consumer_group_protocol
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    JoinGroupResponse,
    SyncGroupResponse,
    TopicDescription,
)
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

CUSTOM_ASSIGNOR = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
    "before re-attempting the upgrade."
)


class _CustomAssignor(Exception):
    """A member's assignment has data of its leader's assignor, which would be lost."""


def plan(group: Group, body: ConsumerGroupHeartbeatRequest, config: CoordinatorConfig) -> ConsumerGroup | Refusal:
    """Return the consumer group that a classic group would become, or why it cannot become one.

    Args:
        group: The classic group, which does not change.
        body: The heartbeat of the member that joins; the others keep partitions of the topics that it describes only.
        config: The configuration.
    """
    classic = group.part
    assert isinstance(classic, ClassicGroup)
    if classic.state is State.EMPTY:
        return ConsumerGroup()
    cannot = f"Cannot upgrade classic group {group.group_id} to consumer group because"
    if not config.group_consumer_migration_policy.upgrades:
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} online upgrade is disabled.")
    if classic.protocol_type != CONSUMER_PROTOCOL_TYPE:
        what = "the group does not use the consumer embedded protocol."
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} {what}")
    if len(classic.members) > config.group_consumer_max_size:
        what = "the group size exceeds the consumer group maximum size."
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} {what}")
    if classic.protocol_name is None:
        # A broker fails with an unknown error. The first generation is complete in a few seconds.
        return Refusal(Error.COORDINATOR_NOT_AVAILABLE, f"{cannot} its first generation is not complete yet.")
    known = {topic.name: Topic(topic.topic_id, topic.partitions) for topic in body.topics}
    try:
        members = [_converted(classic, member, known) for member in classic.members.values()]
    except _CustomAssignor:
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} {CUSTOM_ASSIGNOR}")
    except ConsumerProtocolError:
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} the embedded consumer protocol is malformed.")
    held = [place for member in members for place in member.held_partitions()]
    if len(held) != len(set(held)):
        return Refusal(Error.GROUP_ID_NOT_FOUND, f"{cannot} two members have the same partition.")
    epoch = classic.generation
    return ConsumerGroup(
        generation=epoch,
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


def _converted(group: ClassicGroup, member: Member, topics: dict[str, Topic]) -> ConsumerMember:
    subscription = decode_subscription(member.metadata_for(group.protocol_name))
    assignment = decode_assignment(member.assignment)
    if assignment.user_data:
        raise _CustomAssignor
    assigned: dict[str, dict[int, int]] = {}
    for name, partition in sorted(assignment.partitions):
        if name in topics:
            assigned.setdefault(topics[name].topic_id, {})[partition] = group.generation
    protocols = tuple(member.protocols)
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


def carry_out(turn: Turn, planned: ConsumerGroup) -> None:
    """Make the turn's classic group this consumer group, the result of :func:`plan`.

    Parked requests are answered REBALANCE_IN_PROGRESS. Handed-out member ids are forgotten.
    """
    classic = turn.group.part_as(ClassicGroup)
    for member in classic.members.values():
        rebalancing = Error.REBALANCE_IN_PROGRESS
        reply_to_parked_join(turn, member, JoinGroupResponse(error_code=rebalancing, member_id=member.member_id))
        reply_to_parked_sync(turn, member, SyncGroupResponse(error_code=rebalancing))
    for member_id in classic.pending_joins:
        turn.cancel_heartbeat(member_id)
    reason = f"a member of {consumer_group_protocol(turn.config)} joins"
    if not planned.members:
        turn.record(ConsumerGroupFormed(reason=reason))
        return
    turn.cancel("join")
    turn.cancel("sync")
    turn.record(ConsumerGroupFormed(planned.epoch, reason))
    for each in planned.members.values():
        turn.record(member_record(each))
    topics = [TopicDescription(name, topic.topic_id, topic.partitions) for name, topic in planned.topics.items()]
    turn.record(TopicsChanged(topics, []))
    metadata_hash = planned.current_metadata_hash()
    turn.record(GroupEpochBumped(planned.epoch, metadata_hash, "the generation of the classic group continues"))
    turn.record(TargetAssignmentChanged(planned.epoch, None, dict(planned.targets)))
    for each in planned.members.values():
        turn.record(assignment_record(each, "keeps the assignment of its last generation"))
        assert each.classic is not None
        turn.arm_heartbeat(each.member_id, each.classic.session_timeout_ms)
