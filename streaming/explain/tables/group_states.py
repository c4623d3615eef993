"""Groups as of a time, from the state that Spark has stored and the journal; what Spark's tasks compute.

Between the tasks a group is its snapshot, so that each table decodes it and none reads the journal again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_logic import snapshot
from coordinator_logic.snapshot import UnreadableSnapshot
from coordinator_logic.stored_parts import UnreadablePart
from streaming.explain.time_travel.group_history import group_at
from streaming.explain.time_travel.row_types import TableRow
from streaming.explain.time_travel.rows import GROUP_TABLES, quarantined_row
from streaming.job.group_batch.state_row import load_whole
from streaming.journal.entries import journal_entry, readable
from streaming.journal.fold import Base
from streaming.journal.folded_group import Known


class GroupState(NamedTuple):
    """A group that existed: its snapshot, None if it is quarantined, and the name of its :class:`Known`."""

    group_id: str
    snapshot: bytes | None
    known: str


@dataclass(frozen=True)
class GroupsFold:
    """Folds groups as of ``time`` (ms since the epoch, None: now).

    ``read`` and ``epoch`` are those of the checkpoint's batch, see :class:`Base`.
    """

    time: int | None = None
    read: Mapping[int, int] = field(default_factory=dict)
    epoch: int = 0

    def state_of(self, group_id: str, stored: bytes | None, values: Iterable[bytes | None]) -> GroupState | None:
        """A group from its stored state and the values of its journal's records, in order; None without a group.

        A group whose stored state cannot be read is known if the journal has all of it.
        """
        try:
            base, is_readable = None if stored is None else load_whole(stored), True
        except (UnreadableSnapshot, UnreadablePart):
            base, is_readable = None, False
        found = group_at(readable(values, journal_entry, group_id), self.time, Base(base, self.read, self.epoch))
        if not is_readable and (found.group is None or found.known is not Known.ALL):
            return GroupState(group_id, None, Known.OFFSETS.name)
        return None if found.group is None else GroupState(group_id, snapshot.encode(found.group), found.known.name)


def rows_in(table: str, state: GroupState) -> Iterable[TableRow]:
    """The rows of a group in one of :data:`GROUP_TABLES`."""
    if state.snapshot is None:
        return (quarantined_row(state.group_id),) if table == "groups" else ()
    return GROUP_TABLES[table].rows(snapshot.decode(state.snapshot), Known[state.known])
