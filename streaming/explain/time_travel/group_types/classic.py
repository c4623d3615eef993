"""The rows of a classic group."""

from collections.abc import Iterator
from typing import Any

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
from coordinator_logic.groups.classic.requests.describe_groups import described
from coordinator_logic.messages import DescribedGroup
from coordinator_logic.messages.groups import CLASSIC_TYPE
from streaming.explain.time_travel.group_types.type_rows import TypeRows
from streaming.explain.time_travel.row_types import AssignmentRow, MemberRow


class ClassicRows(TypeRows):
    """Makes the rows of classic groups."""

    def columns(self, group: Group) -> dict[str, Any]:
        """The protocol and the leader."""
        classic = _part(group)
        return {"protocol_name": classic.protocol_name, "leader": classic.leader}

    def members(self, group: Group) -> Iterator[MemberRow]:
        """Its rows in ``members``."""
        classic = _part(group)
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
        """Its rows in ``assignments``."""
        classic = _part(group)
        for member in classic.members.values():
            for topic, partition in _assigned_partitions(classic, member) or ():
                yield AssignmentRow(group.group_id, member.member_id, topic, partition)

    def described(self, group: Group) -> DescribedGroup:
        """The answer of DescribeGroups."""
        return described(group.group_id, _part(group))


def _part(group: Group) -> ClassicGroup:
    assert isinstance(group.part, ClassicGroup)
    return group.part


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
