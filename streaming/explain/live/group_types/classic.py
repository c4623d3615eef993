"""What the coordinator says of a classic group, in words."""

from collections.abc import Sequence

from coordinator_logic.embedded_protocols import ConsumerProtocolError, decode_assignment
from coordinator_logic.messages import DescribedGroup, DescribedMember
from streaming.client import CoordinatorClient
from streaming.explain.live.group_types.description import NOTHING, MemberNow, by_topic


class ClassicDescription:
    """Describes classic groups."""

    ANSWER = DescribedGroup

    def ask(self, client: CoordinatorClient, group_ids: Sequence[str]) -> Sequence[DescribedGroup]:
        """The answers of DescribeGroups."""
        return client.describe_groups(group_ids).groups

    def protocol(self, group: DescribedGroup) -> str:
        """The protocol type and the protocol."""
        return f"{group.protocol_type or 'no protocol type'}, {group.protocol_data or 'no protocol chosen'}"

    def members(self, group: DescribedGroup) -> list[MemberNow]:
        """The members of a group."""
        return [
            MemberNow(
                member.member_id,
                member.group_instance_id or "",
                member.client_id,
                member.client_host,
                classic_assignment(group.protocol_type, member),
            )
            for member in group.members
        ]


def classic_assignment(protocol_type: str, member: DescribedMember) -> str:
    """A consumer's assignment as ``topic: 0, 1``; an assignment of any other protocol type by its size."""
    assignment = member.member_assignment
    if not assignment:
        return NOTHING
    if protocol_type != "consumer":
        return f"{len(assignment)} bytes"
    try:
        partitions = decode_assignment(assignment).partitions
    except ConsumerProtocolError:
        return f"{len(assignment)} bytes, unreadable"
    return "\n".join(by_topic(partitions)) or NOTHING
