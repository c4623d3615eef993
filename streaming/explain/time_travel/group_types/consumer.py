"""The rows of a consumer group (KIP-848): where its members are on the way to their targets."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from coordinator_logic.apis import CONSUMER_GROUP_DESCRIBE
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.group import Group
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.groups.consumer.requests.consumer_group_describe import described
from coordinator_logic.messages import DescribedConsumerGroup
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.explain.time_travel.group_types.type_rows import TypeRows
from streaming.explain.time_travel.row_types import AssignmentRow, MemberRow, TargetRow

Holders = Mapping[tuple[str, int], str]
"""The member that has each partition or has yet to revoke it, by topic id and partition."""


class ConsumerRows(TypeRows):
    """Makes the rows of consumer groups."""

    def columns(self, group: Group) -> dict[str, Any]:
        """The epoch of the target."""
        return {"target_epoch": _part(group).target_epoch}

    def members(self, group: Group) -> Iterator[MemberRow]:
        """Its rows in ``members``."""
        return _member_rows(group.group_id, _part(group))

    def assignments(self, group: Group) -> Iterator[AssignmentRow]:
        """Its rows in ``assignments``: what each member has, then what it has yet to revoke."""
        return _assignment_rows(group.group_id, _part(group))

    def targets(self, group: Group) -> Iterator[TargetRow]:
        """Its rows in ``targets``."""
        return _target_rows(group.group_id, _part(group))

    def described(self, group: Group) -> DescribedConsumerGroup:
        """The answer of ConsumerGroupDescribe, without the assignor: that is a part of the configuration."""
        version = CONSUMER_GROUP_DESCRIBE.max_version
        answer = described(group.group_id, _part(group), CoordinatorConfig(), version)
        return msgspec.structs.replace(answer, assignor_name="")


def _part(group: Group) -> ConsumerGroup:
    assert isinstance(group.part, ConsumerGroup)
    return group.part


def _member_rows(group_id: str, consumer: ConsumerGroup) -> Iterator[MemberRow]:
    holders = holders_of(consumer)
    for member in consumer.members.values():
        classic, target = member.classic, list(_target_of(consumer, member))
        yield MemberRow(
            group_id,
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            False,
            None if classic is None else classic.session_timeout_ms,
            member.rebalance_timeout_ms,
            [] if classic is None else [protocol.name for protocol in classic.protocols],
            list(member.subscribed_topic_names),
            _count(member.assigned),
            CONSUMER_TYPE if classic is None else CLASSIC_TYPE,
            member.epoch,
            member.state.value,
            member.rack_id,
            member.subscribed_topic_regex or None,
            member.server_assignor,
            _count(member.pending_revocation),
            len(target),
            sorted({holders[place] for place in target if place in holders} - {member.member_id}),
        )


def _assignment_rows(group_id: str, consumer: ConsumerGroup) -> Iterator[AssignmentRow]:
    names = names_of_topics(consumer)
    for member in consumer.members.values():
        for held in (member.assigned, member.pending_revocation):
            for topic_id, epochs in sorted(held.items()):
                name, is_revoking = names.get(topic_id, topic_id), held is member.pending_revocation
                for partition, epoch in sorted(epochs.items()):
                    yield AssignmentRow(group_id, member.member_id, name, partition, topic_id, epoch, is_revoking)


def _target_rows(group_id: str, consumer: ConsumerGroup) -> Iterator[TargetRow]:
    names, holders = names_of_topics(consumer), holders_of(consumer)
    for member in consumer.members.values():
        for topic_id, partition in _target_of(consumer, member):
            holder = holders.get((topic_id, partition))
            yield TargetRow(
                group_id,
                member.member_id,
                names.get(topic_id, topic_id),
                partition,
                topic_id,
                partition in member.assigned.get(topic_id, {}),
                None if holder == member.member_id else holder,
            )


def holders_of(consumer: ConsumerGroup) -> Holders:
    """The member that holds each partition of the group."""
    return {place: member.member_id for member in consumer.members.values() for place in member.held_partitions()}


def names_of_topics(consumer: ConsumerGroup) -> dict[str, str]:
    """The names of the topics that the group knows, by topic id."""
    return {topic.topic_id: name for name, topic in consumer.topics.items()}


def _target_of(consumer: ConsumerGroup, member: ConsumerMember) -> Iterator[tuple[str, int]]:
    for topic_id, partitions in sorted(consumer.targets.get(member.member_id, {}).items()):
        for partition in partitions:
            yield topic_id, partition


def _count(partitions: Mapping[str, Iterable[int]]) -> int:
    return sum(len(list(numbers)) for numbers in partitions.values())
