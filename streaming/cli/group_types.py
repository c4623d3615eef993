"""What the commands print differently by a group's type: the table of its members.

Every type is listed here alone, by its name in ListGroups.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup
from streaming.contract.output.terminal import Cell
from streaming.explain.live.group_types import NOTHING, classic_assignment, members_of


@dataclass(frozen=True)
class MemberTable:
    """The columns of a table of members, and the rows of a described group."""

    columns: tuple[str, ...]
    rows: Callable[[Any], Iterable[tuple[Cell, ...]]]


def _classic_rows(group: DescribedGroup) -> Iterator[tuple[Cell, ...]]:
    for member in group.members:
        instance, assignment = member.group_instance_id or NOTHING, classic_assignment(group.protocol_type, member)
        yield member.member_id, instance, member.client_id, member.client_host, assignment.split("\n")


def _consumer_rows(group: DescribedConsumerGroup) -> Iterator[tuple[Cell, ...]]:
    for *texts, subscription, assignment, changes in members_of(group):
        yield (*texts, *(lines.split("\n") for lines in (subscription, assignment, changes)))


MEMBER_TABLES: Mapping[str, MemberTable] = {
    "classic": MemberTable(("MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNMENT"), _classic_rows),
    "consumer": MemberTable(
        ("MEMBER", "INSTANCE", "CLIENT", "HOST", "PROTOCOL", "EPOCH", "SUBSCRIPTION", "ASSIGNMENT", "CHANGES"),
        _consumer_rows,
    ),
}
