"""A group as of any time: its state in a checkpoint, if there is one, changed by the journal's entries up to that time.

The time of a change is that of its journal entry: the group's own clock, which follows the append times of requests.
"""

from collections.abc import Iterable
from typing import NamedTuple

from coordinator_logic.group import Group
from coordinator_logic.records import JournalEntry
from streaming.journal.fold import NO_BASE, Base, GroupFold
from streaming.journal.folded_group import FoldedGroup, Known
from streaming.journal.histories import last_history

CLOCK_ERROR_MS = 3_600_000
"""How far the clock of a group may have gone back: an entry so much later than the time ends the group's history."""


class GroupAt(NamedTuple):
    """A group as of a time, None if it did not exist, and how much of it is known.

    If its members are not known, the group's state, leader and members mean nothing.
    """

    group: Group | None
    known: Known


class GroupHistory:
    """One group while its journal's entries are added, in their order; entries may repeat.

    The history ends with the last entry that is not later than ``time`` (ms since the epoch), and with the journal if
    that is None. Where a wrong clock went back, entries before the last one may be later.
    """

    __slots__ = ("_fold", "_has_ended", "_later", "_newest", "_time")

    def __init__(self, time: int | None, base: Base = NO_BASE) -> None:
        self._time = time
        self._fold = GroupFold(FoldedGroup(base.group), base, compares=True)
        self._later: list[JournalEntry] = []
        """Entries that are later than the time, until a new one that is not follows."""
        self._newest: dict[str, int] = {}
        """The highest sequence number so far, by incarnation."""
        self._has_ended = False

    @property
    def is_forked(self) -> bool:
        """Whether two coordinators have told different histories; :func:`group_at` tells which one holds."""
        return self._fold.is_forked

    @property
    def voids_base(self) -> bool:
        """Whether a later job has told otherwise what the checkpoint has."""
        return self._fold.voids_base

    def add(self, entry: JournalEntry) -> None:
        """Add the next entry."""
        if self._has_ended:
            return
        is_new = entry.sequence > self._newest.get(entry.incarnation, 0)
        if is_new:
            self._newest[entry.incarnation] = entry.sequence
        if self._time is None or entry.timestamp <= self._time:
            if is_new:
                for later in self._later:
                    self._fold.add(later)
                self._later.clear()
            self._fold.add(entry)
        elif entry.timestamp <= self._time + CLOCK_ERROR_MS:
            self._later.append(entry)
        else:
            self._has_ended = True

    def finish(self) -> GroupAt:
        """The group after its last entry; nothing can be added afterwards."""
        self._fold.finish()
        folded = self._fold.observer
        folded.retain_offsets_from(self._time or 0)
        return GroupAt(folded.group, folded.known)


def group_at(entries: Iterable[JournalEntry], time: int | None, base: Base = NO_BASE) -> GroupAt:
    """Fold the journal of one group up to a time; see :class:`GroupHistory`.

    Of two histories, the one of the newer coordinator holds. ``entries`` may begin before the checkpoint's batch; what
    it has already is left out.
    """
    entries = list(entries)
    history = _history(entries, time, base)
    if history.is_forked:
        history = _history(last_history(entries), time, NO_BASE if history.voids_base else base)
    return history.finish()


def _history(entries: Iterable[JournalEntry], time: int | None, base: Base) -> GroupHistory:
    history = GroupHistory(time, base)
    for entry in entries:
        history.add(entry)
    return history
