"""Folds the entries of groups: the one place that knows which entries repeat, which are missing, and which hold.

A fold tells an observer what is new. A group's entries may repeat, because a batch that runs again writes them again:
each counts once, by incarnation and sequence number. Where two coordinators have told different histories, the entry of
the later epoch holds; what a fold has told its observer already is not taken back, see :attr:`GroupFold.is_forked`.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from coordinator_logic.group import Group
from coordinator_logic.records import JournalEntry, RequestCause
from streaming.journal.histories import content_of
from streaming.journal.turns import ends_turn


class Observer:
    """What a fold tells of the entries of one group; an observer overrides what it needs."""

    __slots__ = ()

    def on_begin(self, entry: JournalEntry) -> None:
        """Begin with another incarnation, of which this is the first entry that is there."""

    def on_gap(self, entry: JournalEntry) -> None:
        """Note that entries before this one are missing, or that a later coordinator tells otherwise from here on."""

    def on_entry(self, entry: JournalEntry) -> None:
        """Add the next entry."""

    def on_turn(self, turn: Sequence[JournalEntry]) -> None:
        """Note that these entries, which were added one by one, are a whole turn."""

    def on_end(self, turn: Sequence[JournalEntry]) -> None:
        """Note that the journal ends within a turn of which it has these entries, or none."""


ObserverT = TypeVar("ObserverT", bound=Observer)


class Base(NamedTuple):
    """A group in a checkpoint, None if it has none: a fold leaves out the entries that it has already.

    ``read`` is the offset after the last request that the checkpoint's batch has read, by partition; ``epoch`` is the
    job's epoch in the checkpoint, 0 if it is not known.
    """

    group: Group | None = None
    read: Mapping[int, int] = {}
    epoch: int = 0


NO_BASE = Base()


class GroupFold(Generic[ObserverT]):
    """One group's entries, in the order of the journal.

    Args:
        observer: Is told of the new entries.
        base: The group in a checkpoint with which the observer begins.
        compares: Whether to compare the contents of entries that repeat, which takes time.
    """

    __slots__ = (
        "_base_clock",
        "_base_epoch",
        "_base_place",
        "_contents",
        "_ended",
        "_epoch",
        "_first",
        "_keeps_turns",
        "_read",
        "_time",
        "_turn",
        "has_entries",
        "incarnation",
        "is_forked",
        "observer",
        "sequence",
        "voids_base",
    )

    def __init__(self, observer: ObserverT, base: Base = NO_BASE, *, compares: bool = False) -> None:
        group = base.group
        self.observer = observer
        self.incarnation, self.sequence = ("", 0) if group is None else (group.incarnation, group.sequence)
        """Those of the newest entry."""
        self.has_entries = False
        """Whether an entry was new."""
        self.is_forked = False
        """Whether two coordinators have told different histories, as far as can be seen: the group is to be folded
        again from its :func:`~streaming.journal.histories.last_history`."""
        self.voids_base = False
        """Whether a later job has told otherwise what the checkpoint has: that job went on from an older one."""
        self._base_place = None if group is None else (group.incarnation, group.sequence)
        self._base_clock = 0 if group is None else group.clock
        self._base_epoch, self._read = base.epoch, base.read
        self._epoch = self._time = 0
        self._ended: frozenset[str] = frozenset()
        self._keeps_turns = type(observer).on_turn is not Observer.on_turn
        self._turn: list[JournalEntry] = []
        self._first = self.sequence + 1
        self._contents = array("I") if compares else None
        """The contents of the entries from the first one on that no other one is missing behind."""

    def add(self, entry: JournalEntry) -> bool:
        """Add the next entry; returns whether it is new."""
        if self._base_place is not None and self._is_in_base(*self._base_place, entry):
            # A replay writes entries with their first epoch.
            if 0 < self._base_epoch < entry.job_epoch:
                self.is_forked = self.voids_base = True
            return False
        follows = entry.incarnation == self.incarnation and entry.sequence == self.sequence + 1
        if not follows and self._is_repeated(entry):
            return False
        if entry.job_epoch < self._epoch:
            # A coordinator that has been overtaken has written it late: it is void.
            self.is_forked = True
            return False
        if entry.incarnation != self.incarnation:
            self._begin(entry)
        elif not follows:
            self._leave_out(entry)
        self._tell(entry)
        return True

    def finish(self) -> None:
        """End with the last entry; nothing can be added afterwards."""
        turn, self._turn = self._turn, []
        self.observer.on_end(turn)

    def _is_in_base(self, incarnation: str, sequence: int, entry: JournalEntry) -> bool:
        if entry.incarnation == incarnation:
            return entry.sequence <= sequence
        if self.has_entries:
            return False
        cause = entry.cause
        if isinstance(cause, RequestCause):
            return cause.offset < self._read.get(cause.partition, 0)
        return entry.timestamp <= self._base_clock

    def _is_repeated(self, entry: JournalEntry) -> bool:
        """Whether an entry has been added before, and no later coordinator tells otherwise from its place on.

        A coordinator that handles requests again, which another one has handled, writes the same entries with the same
        times.
        """
        is_here = entry.incarnation == self.incarnation
        if entry.sequence > self.sequence if is_here else entry.incarnation not in self._ended:
            return False
        if self._contents is not None and is_here and entry.sequence >= self._first:
            self.is_forked |= self._contents[entry.sequence - self._first] != content_of(entry)
        is_told_otherwise = entry.job_epoch > self._epoch and entry.timestamp > self._time
        self.is_forked |= is_told_otherwise
        return not is_told_otherwise

    def _begin(self, entry: JournalEntry) -> None:
        self._end_turn()
        if self.incarnation:
            self._ended = (self._ended | {self.incarnation}) - {entry.incarnation}
        self.incarnation = entry.incarnation
        self._count_from(entry)
        self.observer.on_begin(entry)

    def _leave_out(self, entry: JournalEntry) -> None:
        self._end_turn()
        self._count_from(entry)
        self.observer.on_gap(entry)

    def _count_from(self, entry: JournalEntry) -> None:
        self._first = entry.sequence
        if self._contents is not None:
            self._contents = array("I")

    def _tell(self, entry: JournalEntry) -> None:
        self.has_entries = True
        self.sequence, self._epoch, self._time = entry.sequence, entry.job_epoch, entry.timestamp
        if self._contents is not None:
            self._contents.append(content_of(entry))
        if not self._keeps_turns:
            self.observer.on_entry(entry)
            return
        if self._turn and self._turn[-1].cause != entry.cause:
            self._end_turn()
        self._turn.append(entry)
        self.observer.on_entry(entry)
        if ends_turn(entry):
            self._end_turn()

    def _end_turn(self) -> None:
        if self._turn:
            turn, self._turn = self._turn, []
            self.observer.on_turn(turn)


class OneGroup(Protocol):
    """What :class:`JournalFold` keeps of each group: a :class:`GroupFold`, or what has one."""

    def add(self, entry: JournalEntry, /) -> object:
        """Add the next entry of the group."""

    @property
    def is_forked(self) -> bool:
        """Whether two coordinators have told different histories."""


GroupT = TypeVar("GroupT", bound=OneGroup)


class JournalFold(Generic[GroupT]):
    """The entries of all groups, each group's in the order of the journal; ``begin`` makes the fold of a group."""

    def __init__(self, begin: Callable[[str], GroupT]) -> None:
        self.groups: dict[str, GroupT] = {}
        self.entries = 0
        """How many entries were added, those that repeat included."""
        self._begin = begin
        self._forgotten: dict[str, str] = {}

    def add(self, entry: JournalEntry) -> GroupT | None:
        """Add the next entry; returns the fold of its group, None if that was forgotten."""
        self.entries += 1
        fold = self.groups.get(entry.group_id)
        if fold is None:
            if self._forgotten.get(entry.group_id) == entry.incarnation:
                return None
            fold = self.groups[entry.group_id] = self._begin(entry.group_id)
        fold.add(entry)
        return fold

    def forget(self, group_id: str, incarnation: str) -> None:
        """Forget a group whose last incarnation was deleted, but for entries of that one that repeat."""
        del self.groups[group_id]
        self._forgotten[group_id] = incarnation

    @property
    def forked(self) -> set[str]:
        """The groups of which two coordinators have told different histories."""
        return {group_id for group_id, fold in self.groups.items() if fold.is_forked}

    def of_forked(self, entries: Iterable[JournalEntry]) -> dict[str, list[JournalEntry]]:
        """The entries of each forked group; ``entries`` are those of the journal, read again."""
        told: dict[str, list[JournalEntry]] = {group_id: [] for group_id in self.forked}
        for entry in entries:
            if entry.group_id in told:
                told[entry.group_id].append(entry)
        return told
