"""A consumer group becomes a classic group when its last member of the consumer group protocol goes.

A group without members becomes one when a member of the classic protocol joins.
"""

from collections.abc import Collection

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.embedded_protocols import CONSUMER_PROTOCOL_TYPE
from coordinator_logic.errors import Error, Refusal
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.rebalance import prepare_rebalance, select_protocol
from coordinator_logic.groups.classic.records import (
    AssignmentChanged,
    ClassicGroupFormed,
    GenerationStarted,
    LeaderElected,
    MemberAdded,
)
from coordinator_logic.groups.classic.timers import arm_session
from coordinator_logic.groups.consumer.classic_members import encoded_partitions
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.groups.conversions import consumer_group_protocol
from coordinator_logic.messages import JoinGroupRequest
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

# ---- a group without members -----------------------------------------------------------------------------------


def plan(group: Group, body: JoinGroupRequest, config: CoordinatorConfig) -> ClassicGroup | Refusal:
    """The classic group that a consumer group without members becomes when a new member joins."""
    if body.member_id:
        return Refusal(Error.UNKNOWN_MEMBER_ID, f"Group {group.group_id} has no members.")
    return ClassicGroup()


def carry_out(turn: Turn, planned: ClassicGroup) -> None:
    """Make the turn's consumer group a classic group without members."""
    turn.record(ClassicGroupFormed("a member of the classic protocol joins"))


# ---- a group whose last member of the consumer group protocol goes ---------------------------------------------


def happens_without(consumer: ConsumerGroup, leaving: Collection[str], config: CoordinatorConfig) -> bool:
    """Whether the group becomes a classic group when these members go: all others speak the classic protocol."""
    staying = [member for member_id, member in consumer.members.items() if member_id not in leaving]
    if not staying or any(member.classic is None for member in staying):
        return False
    return config.group_consumer_migration_policy.downgrades and len(staying) <= config.group_max_size


def happens_with(consumer: ConsumerGroup, static: ConsumerMember, config: CoordinatorConfig) -> bool:
    """Whether the group becomes a classic group when this instance, the last one, joins with the classic protocol."""
    if static.classic is not None or not config.group_consumer_migration_policy.downgrades:
        return False
    others = [member for member in consumer.members.values() if member.member_id != static.member_id]
    return all(member.classic is not None for member in others) and len(consumer.members) <= config.group_max_size


def downgrade(turn: Turn, consumer: ConsumerGroup, rebalance_because: str | None) -> None:
    """Make the group a Stable classic group of its members, with their targets as assignments.

    As in Kafka, the time in which a member must join or sync goes on: it has an effect if the group is upgraded again.
    With ``rebalance_because``, the end of a reason, the members rebalance at once.
    """
    names = {topic.topic_id: name for name, topic in consumer.topics.items()}
    members = list(consumer.members.values())
    turn.record(
        ClassicGroupFormed(f"its last member of {consumer_group_protocol(turn.config)} has gone", State.STABLE.value)
    )
    group = turn.group.part_as(ClassicGroup)
    for member in members:
        turn.record(_added(member))
    turn.record(LeaderElected(members[0].member_id))
    turn.record(GenerationStarted(consumer.epoch, select_protocol(group)))
    assignments = {}
    for member in members:
        metadata = group.members[member.member_id].metadata_for(group.protocol_name)
        assignments[member.member_id] = encoded_partitions(consumer.targets.get(member.member_id, {}), names, metadata)
    turn.record(AssignmentChanged(assignments))
    for added in group.members.values():
        added.is_new = False
        arm_session(turn, added)
    if rebalance_because is not None:
        prepare_rebalance(turn, f"the group became a classic group{rebalance_because}")


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
        list(classic.protocols),
    )
