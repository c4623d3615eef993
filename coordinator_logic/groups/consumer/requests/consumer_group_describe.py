"""ConsumerGroupDescribe: the current state of a consumer group: epochs, members, what they have and what they will.

An entry for a group other than the event's key is answered NOT_COORDINATOR.
"""

import math
from collections.abc import Iterable, Mapping

from coordinator_logic.apis import CONSUMER_GROUP_DESCRIBE_FIRST_VERSION_WITH_MEMBER_TYPE
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.groups.consumer.target_assignment import preferred_assignor
from coordinator_logic.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedTopicPartitions,
)
from coordinator_logic.messages.consumer_groups import CLASSIC_MEMBER, CONSUMER_MEMBER, UNKNOWN_MEMBER_TYPE
from coordinator_logic.partitioning import hash_table_slot
from coordinator_logic.turn import Turn

MAX_LOAD_FACTOR = 0.75


def handle(turn: Turn, request: Request, body: ConsumerGroupDescribeRequest) -> None:
    """Describe each group, in the request's order."""
    version = request.address.version
    described = {group_id: _describe(turn, group_id, version) for group_id in dict.fromkeys(body.group_ids)}
    turn.reply(request.address, ConsumerGroupDescribeResponse([described[group_id] for group_id in body.group_ids]))


def _describe(turn: Turn, group_id: str, version: int) -> DescribedConsumerGroup:
    if group_id != turn.group_id:
        return DescribedConsumerGroup(group_id, Error.NOT_COORDINATOR)
    if not group_id:
        return DescribedConsumerGroup(group_id, Error.INVALID_GROUP_ID)
    group = turn.existing
    if group is None:
        return DescribedConsumerGroup(group_id, Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group.part, ConsumerGroup):
        message = f"Group {group_id} is not a consumer group."
        return DescribedConsumerGroup(group_id, Error.GROUP_ID_NOT_FOUND, message)
    return described(group_id, group.part, turn.config, version)


def described(
    group_id: str, consumer: ConsumerGroup, config: CoordinatorConfig, version: int
) -> DescribedConsumerGroup:
    """The answer for a consumer group that exists, in a version of the API."""
    names = {topic.topic_id: name for name, topic in consumer.topics.items()}
    shows_type = version >= CONSUMER_GROUP_DESCRIBE_FIRST_VERSION_WITH_MEMBER_TYPE
    return DescribedConsumerGroup(
        group_id,
        group_state=consumer.state.value,
        group_epoch=consumer.epoch,
        assignment_epoch=consumer.target_epoch,
        assignor_name=preferred_assignor(consumer.members.values(), config.server_assignors),
        members=[_describe_member(consumer, member, names, shows_type) for member in _as_listed_by_a_broker(consumer)],
    )


def _as_listed_by_a_broker(consumer: ConsumerGroup) -> list[ConsumerMember]:
    """The members in the order of the hash table in which a broker keeps them, if it never held more members.

    Within a slot, the newest comes first (Kafka's ``SnapshottableHashTable.CurrentIterator``).
    """
    slots = max(2, 1 << (math.ceil(len(consumer.members) * MAX_LOAD_FACTOR) - 1).bit_length())
    newest_first = list(consumer.members.values())[::-1]
    return sorted(newest_first, key=lambda member: hash_table_slot(member.member_id, slots))


def _describe_member(
    consumer: ConsumerGroup, member: ConsumerMember, names: Mapping[str, str], shows_type: bool
) -> DescribedConsumer:
    held: dict[str, list[int]] = {}
    for topic_id, partition in member.held_partitions():
        held.setdefault(topic_id, []).append(partition)
    member_type = CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER
    return DescribedConsumer(
        member.member_id,
        member.group_instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        list(member.subscribed_topic_names),
        member.subscribed_topic_regex,
        _assignment(held, names),
        _assignment(consumer.targets.get(member.member_id, {}), names),
        member_type if shows_type else UNKNOWN_MEMBER_TYPE,
    )


def _assignment(partitions: Mapping[str, Iterable[int]], names: Mapping[str, str]) -> DescribedAssignment:
    """Name the topics; those that no longer exist are left out."""
    return DescribedAssignment(
        [
            DescribedTopicPartitions(topic_id, names[topic_id], sorted(numbers))
            for topic_id, numbers in sorted(partitions.items())
            if topic_id in names
        ]
    )


def refuse(body: ConsumerGroupDescribeRequest, version: int, error: Error) -> ConsumerGroupDescribeResponse:
    """Report one error for the whole request, on every group."""
    return ConsumerGroupDescribeResponse([DescribedConsumerGroup(group_id, error) for group_id in body.group_ids])
