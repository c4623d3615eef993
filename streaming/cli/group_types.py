"""What the commands print differently by a group's type: the table of its members.

Every type is listed here alone, by its name in ListGroups.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup
from streaming.contract.output.columns import Column
from streaming.contract.output.terminal import Cell
from streaming.explain.live.group_types import NOTHING, classic_assignment, members_of


@dataclass(frozen=True)
class MemberTable:
    """The columns of a table of members, and the rows of a described group."""

    columns: tuple[Column, ...]
    rows: Callable[[Any], Iterable[tuple[Cell, ...]]]


def _classic_rows(group: DescribedGroup) -> Iterator[tuple[Cell, ...]]:
    for member in group.members:
        instance, assignment = member.group_instance_id or NOTHING, classic_assignment(group.protocol_type, member)
        yield member.member_id, instance, member.client_id, member.client_host, assignment.split("\n")


def _consumer_rows(group: DescribedConsumerGroup) -> Iterator[tuple[Cell, ...]]:
    for *texts, subscription, assignment, changes in members_of(group):
        yield (*texts, *(lines.split("\n") for lines in (subscription, assignment, changes)))


_MEMBER, _ASSIGNMENT = Column("MEMBER"), Column("ASSIGNMENT", least=15)
_HOST, _CLIENT, _INSTANCE = Column("HOST", rank=4), Column("CLIENT", rank=6), Column("INSTANCE", rank=7)

MEMBER_TABLES: Mapping[str, MemberTable] = {
    "classic": MemberTable((_MEMBER, _INSTANCE, _CLIENT, _HOST, _ASSIGNMENT), _classic_rows),
    "consumer": MemberTable(
        (
            *(_MEMBER, _INSTANCE, _CLIENT, _HOST),
            Column("PROTOCOL", rank=8),
            Column("EPOCH", rank=3),
            Column("SUBSCRIPTION", rank=5, least=15),
            _ASSIGNMENT,
            Column("CHANGES", rank=2, least=15),
        ),
        _consumer_rows,
    ),
}
