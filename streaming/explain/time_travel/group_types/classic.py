"""The rows of a classic group."""

from collections.abc import Iterator
from typing import Any

from coordinator_logic.embedded_protocols import (
    ConsumerProtocolError,
    TopicPartition,
    decode_assignment,
    subscribed_topics,
)
from coordinator_logic.group import CLASSIC_TYPE, CONSUMER_PROTOCOL_TYPE, Group, Member
from coordinator_logic.groups.classic.requests.describe_groups import described
from coordinator_logic.messages import DescribedGroup
from streaming.explain.time_travel.row_types import AssignmentRow, MemberRow, TargetRow


class ClassicRows:
    """Makes the rows of classic groups."""

    def columns(self, group: Group) -> dict[str, Any]:
        """The protocol and the leader."""
        return {"protocol_name": group.protocol_name, "leader": group.leader}

    def members(self, group: Group) -> Iterator[MemberRow]:
        """Its rows in ``members``."""
        for member in group.members.values():
            partitions = _assigned_partitions(group, member)
            yield MemberRow(
                group.group_id,
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.member_id == group.leader,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                [protocol.name for protocol in member.protocols],
                _subscribed_topics(group, member),
                None if partitions is None else len(partitions),
                CLASSIC_TYPE,
            )

    def assignments(self, group: Group) -> Iterator[AssignmentRow]:
        """Its rows in ``assignments``."""
        for member in group.members.values():
            for topic, partition in _assigned_partitions(group, member) or ():
                yield AssignmentRow(group.group_id, member.member_id, topic, partition)

    def targets(self, _group: Group) -> tuple[TargetRow, ...]:
        """None: a leader assigns."""
        return ()

    def described(self, group: Group) -> DescribedGroup:
        """The answer of DescribeGroups."""
        return described(group)


def _subscribed_topics(group: Group, member: Member) -> list[str] | None:
    """The topics of the protocol that the group has chosen, or else of the one that the member prefers."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or not member.protocols:
        return None
    metadata = member.metadata_for(group.protocol_name) or member.protocols[0].metadata
    try:
        return sorted(subscribed_topics(metadata))
    except ConsumerProtocolError:
        return None


def _assigned_partitions(group: Group, member: Member) -> list[TopicPartition] | None:
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    try:
        return decode_assignment(member.assignment).partitions
    except ConsumerProtocolError:
        return None
