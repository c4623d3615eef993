"""The groups of a rebuilt checkpoint: those of a backup, changed by the journal's entries after it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.group import Group
from coordinator_logic.group.deadlines import earliest
from coordinator_logic.partitioning import partition_for
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry, RequestCause, directory_entry
from coordinator_logic.snapshot import UnreadableSnapshot
from coordinator_logic.stored_parts import UnreadablePart
from coordinator_logic.timing.loading import load as load_group
from streaming.job.group_batch.state_row import load_whole, store
from streaming.job.rows.records import DEFAULT_LIMITS
from streaming.job.spark_internals.checkpoint_layout.state_reader import StoredGroup
from streaming.journal.fold import NO_BASE, Base, GroupFold, JournalFold
from streaming.journal.folded_group import FoldedGroup, Known
from streaming.journal.histories import last_history


class Resumption(NamedTuple):
    """Where and when the job continues.

    ``positions`` are the offsets of the first requests that it reads, ``times`` their append times, both by partition.
    A partition without unread requests has no time; ``now`` takes its place. Times are ms since the epoch. The journal
    does not name the present requests of the partitions in ``cut``.
    """

    positions: Mapping[int, int]
    times: Mapping[int, int]
    now: int
    cut: frozenset[int] = frozenset()


class RebuiltGroup(NamedTuple):
    """A group, how much of it is known, and what the directory should say of it; None if it cannot be read."""

    stored: StoredGroup
    known: Known
    entry: GroupDirectoryEntry | None


class RebuiltGroups:
    """The groups that follow from the entries of the journal, when all are added.

    Args:
        backup: The groups of the backup; none without one.
        read: The offset after the last request that the backup has read, by partition.
        backup_epoch: The job's epoch in the backup; 0 without one, or if it is not known.
    """

    def __init__(self, backup: Mapping[str, StoredGroup], read: Mapping[int, int], backup_epoch: int = 0) -> None:
        self._backup = backup
        self._backup_epoch = backup_epoch
        self._read = dict(read)
        self.journal = JournalFold(self._begin)
        self.newest_epoch = 0
        """The highest epoch of a job that has written an entry."""
        self.newest: dict[int, int] = {}
        """The last request that an entry names, by partition."""
        self.newest_times: dict[int, int] = {}
        """The time of the latest change that a request has caused, by the request's partition; ms since the epoch."""

    def add(self, entry: JournalEntry) -> None:
        """Add the next entry of the journal; the entries of a group are in order, and may repeat."""
        self.newest_epoch = max(self.newest_epoch, entry.job_epoch)
        cause = entry.cause
        if isinstance(cause, RequestCause):
            partition = cause.partition
            self.newest[partition] = max(cause.offset, self.newest.get(partition, -1))
            self.newest_times[partition] = max(entry.timestamp, self.newest_times.get(partition, 0))
        self.journal.add(entry)

    def tell_again(self, group_id: str, entries: list[JournalEntry]) -> None:
        """Fold a group again, with the history that holds; ``entries`` are all that the journal has of it."""
        groups = self.journal.groups
        fold = _fold(NO_BASE) if groups[group_id].voids_base else self._begin(group_id)
        groups[group_id] = fold
        for entry in last_history(entries):
            fold.add(entry)

    def finished(
        self, resumption: Resumption, config: CoordinatorConfig, directory: Mapping[str, GroupDirectoryEntry]
    ) -> Iterator[RebuiltGroup]:
        """Each group that exists, as it is to be stored; ends all groups.

        The directory gives the generation of a group whose journal lacks it: generations never go back.
        """
        folds = self.journal.groups
        for group_id in sorted({*self._backup, *folds}):
            fold = folds.pop(group_id, None)
            kept = self._backup.get(group_id)
            if fold is not None and (fold.has_entries or kept is None):
                fold.finish()
                folded = fold.observer
                folded.retain_offsets_from(resumption.now)
                # A group that the backup has and that cannot be read is rebuilt if the journal has all of it.
                if kept is None or folded.known is Known.ALL or _decoded(kept.stored) is not None:
                    if folded.group is not None:
                        if folded.known is not Known.ALL and group_id in directory:
                            folded.group.part.generation = max(folded.group.generation, directory[group_id].generation)
                        yield _loaded(folded.group, folded, resumption, config)
                    continue
            if kept is not None:
                yield self._continued(kept, resumption)

    def _begin(self, group_id: str) -> GroupFold[FoldedGroup]:
        kept = self._backup.get(group_id)
        return _fold(Base(None if kept is None else _decoded(kept.stored), self._read, self._backup_epoch))

    def _continued(self, kept: StoredGroup, resumption: Resumption) -> RebuiltGroup:
        """A group that has not changed since the backup. Its sessions count from when its requests are read again."""
        group = _decoded(kept.stored)
        if group is None:
            return RebuiltGroup(kept, Known.ALL, None)
        if any(position > self._read.get(each, 0) for each, position in resumption.positions.items()):
            group.sessions_from = max(group.sessions_from, _time_for(group, resumption))
            kept = kept._replace(stored=_stored(group))
        return RebuiltGroup(kept, Known.ALL, directory_entry(group, len(kept.stored)))


def _fold(base: Base) -> GroupFold[FoldedGroup]:
    return GroupFold(FoldedGroup(base.group), base, compares=True)


def _loaded(group: Group, folded: FoldedGroup, resumption: Resumption, config: CoordinatorConfig) -> RebuiltGroup:
    load_group(group, _time_for(group, resumption), config)
    group.applied_until = {
        partition: end
        for partition, end in folded.applied.items()
        if partition not in resumption.cut and end > resumption.positions.get(partition, end)
    }
    due = earliest(group.timers, group.sessions_from)
    wake_at = 0 if due is None else due[1].deadline(group.sessions_from)
    stored = StoredGroup(group.group_id, _stored(group), wake_at)
    return RebuiltGroup(stored, folded.known, directory_entry(group, len(stored.stored)))


def _time_for(group: Group, resumption: Resumption) -> int:
    """The time from which the job reads the group's requests; a group's clients write to one partition."""
    partition = partition_for(group.group_id, len(resumption.positions))
    return resumption.times.get(partition, resumption.now)


def _stored(group: Group) -> bytes:
    row = store(group, DEFAULT_LIMITS)
    assert row is not None
    return row.packed()


def _decoded(stored: bytes) -> Group | None:
    """Decode a group; None if it cannot be read, as in quarantine."""
    try:
        return load_whole(stored)
    except (UnreadableSnapshot, UnreadablePart):
        return None
