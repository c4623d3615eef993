"""What makes the rows of a group; a type that is not listed has no more than this."""

from collections.abc import Iterable
from typing import Any

from coordinator_logic.group import Group
from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup, DescribedMember
from streaming.explain.time_travel.row_types import AssignmentRow, MemberRow, TargetRow


class TypeRows:
    """Makes the rows of groups of one type."""

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
