"""What makes the rows of a type of group."""

from collections.abc import Iterable
from typing import Any, Protocol

from coordinator_logic.group import Group
from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup
from streaming.explain.time_travel.row_types import AssignmentRow, MemberRow, TargetRow


class TypeRows(Protocol):
    """Makes the rows of groups of one type."""

    def columns(self, group: Group) -> dict[str, Any]:
        """The columns of its row in ``groups`` that only this type fills, by the names of the fields."""

    def members(self, group: Group) -> Iterable[MemberRow]:
        """Its rows in ``members``."""

    def assignments(self, group: Group) -> Iterable[AssignmentRow]:
        """Its rows in ``assignments``."""

    def targets(self, group: Group) -> Iterable[TargetRow]:
        """Its rows in ``targets``."""

    def described(self, group: Group) -> DescribedGroup | DescribedConsumerGroup:
        """The answer to a request that describes it."""
