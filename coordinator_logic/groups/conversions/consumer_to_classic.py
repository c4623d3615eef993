"""A consumer group that becomes a classic group when its last member of the newer protocol goes."""

from collections.abc import Collection

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.embedded_protocols import Assignment, TopicPartition, encode_assignment
from coordinator_logic.group import CONSUMER_PROTOCOL_TYPE
from coordinator_logic.groups.classic.rebalance import select_protocol
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.groups.consumer.records import ClassicGroupFormed
from coordinator_logic.messages import Protocol
from coordinator_logic.records import AssignmentChanged, GenerationStarted, LeaderElected, MemberAdded
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def downgrades_without(consumer: ConsumerGroup, leaving: Collection[str], config: CoordinatorConfig) -> bool:
    """Whether the group becomes a classic group when these members go: all others speak the classic protocol."""
    staying = [member for member_id, member in consumer.members.items() if member_id not in leaving]
    if not staying or any(member.classic is None for member in staying):
        return False
    return config.group_consumer_migration_policy.downgrades and len(staying) <= config.group_max_size


def downgrades_with(consumer: ConsumerGroup, static: ConsumerMember, config: CoordinatorConfig) -> bool:
    """Whether the group becomes a classic group when this instance, the last one, joins with the classic protocol."""
    if static.classic is not None or not config.group_consumer_migration_policy.downgrades:
        return False
    others = [member for member in consumer.members.values() if member.member_id != static.member_id]
    return all(member.classic is not None for member in others) and len(consumer.members) <= config.group_max_size


def downgrade(turn: Turn, consumer: ConsumerGroup, leaving: Collection[str]) -> None:
    """Make the group a Stable classic group of the members that stay, with their targets as assignments.

    As in Kafka, the time in which a member must join or sync goes on: it has an effect if the group is upgraded again.
    """
    staying = [member for member_id, member in consumer.members.items() if member_id not in leaving]
    names = {topic.topic_id: name for name, topic in consumer.topics.items()}
    turn.record(ClassicGroupFormed("its last member of the newer protocol has gone", State.STABLE.value))
    group = turn.group
    for member in staying:
        turn.record(_added(member))
    turn.record(LeaderElected(staying[0].member_id))
    turn.record(GenerationStarted(consumer.epoch, select_protocol(group)))
    assignments = {}
    for member in staying:
        metadata = group.members[member.member_id].metadata_for(group.protocol_name)
        assignments[member.member_id] = encoded_partitions(consumer.targets.get(member.member_id, {}), names, metadata)
    turn.record(AssignmentChanged(assignments))
    for added in group.members.values():
        added.is_new = False
        turn.arm_session(added)


def _added(member: ConsumerMember) -> MemberAdded:
    classic = member.classic
    assert classic is not None
    return MemberAdded(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        classic.session_timeout_ms,
        CONSUMER_PROTOCOL_TYPE,
        [Protocol(protocol.name, protocol.metadata) for protocol in classic.protocols],
    )


def encoded_partitions(partitions: dict[str, list[int]], names: dict[str, str], metadata: bytes) -> bytes:
    """Encode partitions, by topic id, in the version of the consumer protocol in which the member subscribes."""
    assigned = [
        TopicPartition(names[topic_id], number)
        for topic_id in partitions
        if topic_id in names
        for number in partitions[topic_id]
    ]
    version = int.from_bytes(metadata[:2], "big", signed=True)
    return encode_assignment(Assignment(sorted(assigned)), max(version, 0))
