"""The rows and the description of a group of each type: the one place of the room that looks them up by the type."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from coordinator_logic.apis import CONSUMER_GROUP_DESCRIBE
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.embedded_protocols import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerProtocolError,
    TopicPartition,
    decode_assignment,
    subscribed_topics,
)
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.classic.requests import describe_groups
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.groups.consumer.requests import consumer_group_describe
from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup, DescribedMember
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.explain.time_travel.row_types import AssignmentRow, MemberRow, TargetRow


class TypeRows:
    """Makes the rows of groups of one type; a type that is not listed has no more than this."""

    def columns(self, group: Group) -> dict[str, Any]:
        """The columns of its row in ``groups`` that only this type fills, by the names of the fields."""
        return {}

    def members(self, group: Group) -> Iterable[MemberRow]:
        """Its rows in ``members``."""
        return ()

    def assignments(self, group: Group) -> Iterable[AssignmentRow]:
        """Its rows in ``assignments``."""
        return ()

    def targets(self, group: Group) -> Iterable[TargetRow]:
        """Its rows in ``targets``; none if a leader assigns."""
        return ()

    def described(self, group: Group) -> DescribedGroup | DescribedConsumerGroup:
        """The answer to a request that describes it."""
        members = [DescribedMember(member_id, None, "", "", b"", b"") for member_id in group.part.member_ids]
        state, protocol_type = group.state.value, group.part.protocol_type or ""
        return DescribedGroup(group.group_id, group_state=state, protocol_type=protocol_type, members=members)


class ClassicRows(TypeRows):
    """Makes the rows of classic groups."""

    def columns(self, group: Group) -> dict[str, Any]:
        classic = group.part_as(ClassicGroup)
        return {"protocol_name": classic.protocol_name, "leader": classic.leader}

    def members(self, group: Group) -> Iterator[MemberRow]:
        classic = group.part_as(ClassicGroup)
        for member in classic.members.values():
            partitions = _assigned_partitions(classic, member)
            yield MemberRow(
                group.group_id,
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.member_id == classic.leader,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                [protocol.name for protocol in member.protocols],
                _subscribed_topics(classic, member),
                None if partitions is None else len(partitions),
                CLASSIC_TYPE,
            )

    def assignments(self, group: Group) -> Iterator[AssignmentRow]:
        classic = group.part_as(ClassicGroup)
        for member in classic.members.values():
            for topic, partition in _assigned_partitions(classic, member) or ():
                yield AssignmentRow(group.group_id, member.member_id, topic, partition)

    def described(self, group: Group) -> DescribedGroup:
        return describe_groups.described(group.group_id, group.part_as(ClassicGroup))


def _subscribed_topics(group: ClassicGroup, member: Member) -> list[str] | None:
    """The topics of the protocol that the group has chosen, or else of the one that the member prefers."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or not member.protocols:
        return None
    metadata = member.metadata_for(group.protocol_name) or member.protocols[0].metadata
    try:
        return sorted(subscribed_topics(metadata))
    except ConsumerProtocolError:
        return None


def _assigned_partitions(group: ClassicGroup, member: Member) -> list[TopicPartition] | None:
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    try:
        return decode_assignment(member.assignment).partitions
    except ConsumerProtocolError:
        return None


class ConsumerRows(TypeRows):
    """Makes the rows of consumer groups (KIP-848): where its members are on the way to their targets."""

    def columns(self, group: Group) -> dict[str, Any]:
        return {"target_epoch": group.part_as(ConsumerGroup).target_epoch}

    def members(self, group: Group) -> Iterator[MemberRow]:
        consumer = group.part_as(ConsumerGroup)
        holders = _holders_of(consumer)
        for member in consumer.members.values():
            classic, target = member.classic, list(_target_of(consumer, member))
            yield MemberRow(
                group.group_id,
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

    def assignments(self, group: Group) -> Iterator[AssignmentRow]:
        """Its rows in ``assignments``: what each member has, then what it has yet to revoke."""
        consumer = group.part_as(ConsumerGroup)
        names = _names_of_topics(consumer)
        for member in consumer.members.values():
            for held in (member.assigned, member.pending_revocation):
                for topic_id, epochs in sorted(held.items()):
                    name, is_revoking = names.get(topic_id, topic_id), held is member.pending_revocation
                    for number, epoch in sorted(epochs.items()):
                        yield AssignmentRow(
                            group.group_id, member.member_id, name, number, topic_id, epoch, is_revoking
                        )

    def targets(self, group: Group) -> Iterator[TargetRow]:
        consumer = group.part_as(ConsumerGroup)
        names, holders = _names_of_topics(consumer), _holders_of(consumer)
        for member in consumer.members.values():
            for topic_id, partition in _target_of(consumer, member):
                holder = holders.get((topic_id, partition))
                yield TargetRow(
                    group.group_id,
                    member.member_id,
                    names.get(topic_id, topic_id),
                    partition,
                    topic_id,
                    partition in member.assigned.get(topic_id, {}),
                    None if holder == member.member_id else holder,
                )

    def described(self, group: Group) -> DescribedConsumerGroup:
        """The answer of ConsumerGroupDescribe, without the assignor: that is a part of the configuration."""
        version = CONSUMER_GROUP_DESCRIBE.max_version
        answer = consumer_group_describe.described(
            group.group_id, group.part_as(ConsumerGroup), CoordinatorConfig(), version
        )
        return msgspec.structs.replace(answer, assignor_name="")


def _holders_of(consumer: ConsumerGroup) -> Mapping[tuple[str, int], str]:
    """The member that has each partition or has yet to revoke it, by topic id and partition."""
    return {place: member.member_id for member in consumer.members.values() for place in member.held_partitions()}


def _names_of_topics(consumer: ConsumerGroup) -> dict[str, str]:
    """The names of the topics that the group knows, by topic id."""
    return {topic.topic_id: name for name, topic in consumer.topics.items()}


def _target_of(consumer: ConsumerGroup, member: ConsumerMember) -> Iterator[tuple[str, int]]:
    for topic_id, partitions in sorted(consumer.targets.get(member.member_id, {}).items()):
        for partition in partitions:
            yield topic_id, partition


def _count(partitions: Mapping[str, Iterable[int]]) -> int:
    return sum(len(list(numbers)) for numbers in partitions.values())


_BY_TYPE: Mapping[str, TypeRows] = {CLASSIC_TYPE: ClassicRows(), CONSUMER_TYPE: ConsumerRows()}
_ANY = TypeRows()


def rows_of_type(group: Group) -> TypeRows:
    """What makes the rows of groups of this one's type."""
    return _BY_TYPE.get(group.group_type, _ANY)
