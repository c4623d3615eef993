"""The rows of a group in the tables ``groups``, ``members``, ``assignments``, ``targets`` and ``offsets``."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from coordinator_logic.committed_offsets import Offsets, offset_count
from coordinator_logic.group import Group
from coordinator_logic.records import QUARANTINED
from streaming.explain.time_travel.group_types import rows_of_type
from streaming.explain.time_travel.row_types import AssignmentRow, GroupRow, MemberRow, OffsetRow, TableRow, TargetRow
from streaming.journal.folded_group import Known

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
_LATEST_MS = (_LATEST - _EPOCH) // timedelta(milliseconds=1)


def quarantined_row(group_id: str) -> GroupRow:
    """The row of a group whose stored state cannot be read."""
    return GroupRow(group_id, state=QUARANTINED, known="nothing")


def group_row(group: Group, known: Known = Known.ALL) -> GroupRow:
    """The group's row in ``groups``."""
    row = GroupRow(
        group.group_id,
        group.incarnation,
        generation=group.generation,
        protocol_type=group.part.protocol_type,
        offsets=offset_count(group.offsets),
        open_transactions=len(group.open_transactions),
        sequence=group.sequence,
        known=known.name.lower(),
    )
    if known is Known.OFFSETS:
        # A group that was found after a gap has the generation 0 until an entry says otherwise.
        return msgspec.structs.replace(row, generation=group.generation or None)
    return msgspec.structs.replace(
        row,
        state=group.state.value,
        state_since=utc(group.part.state_timestamp),
        members=len(group.part.member_ids),
        group_type=group.group_type,
        **rows_of_type(group).columns(group),
    )


def offset_rows(group: Group) -> Iterator[OffsetRow]:
    """The group's rows in ``offsets``: the committed ones, then the pending ones of each open transaction."""
    yield from _offset_rows(group.group_id, group.offsets, None)
    for producer_id, transaction in group.open_transactions.items():
        yield from _offset_rows(group.group_id, transaction.offsets, producer_id)


def utc(milliseconds: int) -> datetime:
    """A time in ms since the epoch; from 0 to the year 9999, since clients choose some times."""
    return _EPOCH + timedelta(milliseconds=min(max(milliseconds, 0), _LATEST_MS))


def _offset_rows(group_id: str, offsets: Offsets, producer_id: int | None) -> Iterator[OffsetRow]:
    for topic, partitions in offsets.items():
        for partition, committed in partitions.items():
            expires = committed.expire_timestamp
            yield OffsetRow(
                group_id,
                topic,
                partition,
                committed.offset,
                committed.leader_epoch,
                committed.metadata,
                utc(committed.commit_timestamp),
                None if expires is None else utc(expires),
                producer_id,
                committed.sequence or None,
                committed.topic_id or None,
            )


class GroupTable(NamedTuple):
    """A table of groups: the type of its rows, and the rows of a group of which so much is known.

    The offsets of a group that was read from a checkpoint may be damaged: the rows of ``offsets`` then raise
    :class:`~coordinator_logic.stored_parts.UnreadablePart`.
    """

    row_type: type[TableRow]
    rows: Callable[[Group, Known], Iterable[TableRow]]


GROUP_TABLES: Mapping[str, GroupTable] = {
    "groups": GroupTable(GroupRow, lambda group, known: (group_row(group, known),)),
    "members": GroupTable(MemberRow, lambda group, _: rows_of_type(group).members(group)),
    "assignments": GroupTable(AssignmentRow, lambda group, _: rows_of_type(group).assignments(group)),
    "targets": GroupTable(TargetRow, lambda group, _: rows_of_type(group).targets(group)),
    "offsets": GroupTable(OffsetRow, lambda group, _: offset_rows(group)),
}
"""The tables of groups, by name."""
