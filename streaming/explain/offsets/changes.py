"""The changes of a group's committed offsets, as its journal tells them: what was there before, who changed it, why."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from coordinator_logic.apis import RESET_OFFSETS
from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.group import Group
from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.records import ClassicGroupFormed, GenerationStarted
from coordinator_logic.groups.consumer.records import ConsumerGroupFormed, GroupEpochBumped
from coordinator_logic.records import (
    Cause,
    GroupDeleted,
    JournalEntry,
    OffsetRecord,
    OffsetsCommitted,
    OffsetsDeleted,
    QuarantinedStateDropped,
    RequestCause,
    TransactionalOffsetsCommitted,
    TransactionEnded,
    apply,
)
from streaming.journal.fold import GroupFold, Observer
from streaming.journal.histories import last_history


class OffsetChange(NamedTuple):
    """A change of the committed offset of one partition.

    ``before`` and ``after`` are None if there was or is no offset; ``before`` is also None if the journal no longer has
    it, which ``knows_before`` tells. ``generation`` is the group's generation or epoch, None if the journal no longer
    has it. A transaction's offset changes when the transaction ends; the cause is then the commit in the transaction.
    """

    entry: JournalEntry
    generation: int | None
    partition: TopicPartition
    before: CommittedOffset | None
    after: CommittedOffset | None
    knows_before: bool
    cause: Cause
    transactional_id: str | None = None

    @property
    def reason(self) -> str:
        """Why it was changed, as far as the journal says."""
        record = self.entry.record
        return record.reason if isinstance(record, OffsetsCommitted | OffsetsDeleted | GroupDeleted) else ""

    @property
    def goes_back(self) -> bool:
        """Whether the offset is lower than before, or deleted; not if the one before is not known."""
        return self.before is not None and (self.after is None or self.after.offset < self.before.offset)

    @property
    def is_reset(self) -> bool:
        """Whether an operator reset the offset."""
        return isinstance(self.cause, RequestCause) and self.cause.api == RESET_OFFSETS.name


_Generation = GenerationStarted | GroupEpochBumped | ConsumerGroupFormed | ClassicGroupFormed
_End = GroupDeleted | QuarantinedStateDropped


def matters_for_offsets(entry: JournalEntry) -> bool:
    """Whether :func:`changes_of` needs the entry, also as the first one of its group."""
    return entry.sequence == 1 or isinstance(entry.record, OffsetRecord | _Generation | _End)


def changes_of(entries: Iterable[JournalEntry]) -> Iterator[OffsetChange]:
    """The changes of one group's offsets. ``entries`` are the group's, in the journal's order; entries may repeat."""
    told = _OffsetsTold()
    fold = GroupFold(told)
    for entry in last_history(entries):
        fold.add(entry)
        yield from told.changes
        told.changes = []


def last_reset(changes: Iterable[OffsetChange]) -> list[OffsetChange]:
    """The changes by the last request that reset offsets; empty if there is none."""
    found: list[OffsetChange] = []
    for change in changes:
        if change.is_reset:
            if found and found[-1].cause != change.cause:
                found = []
            found.append(change)
    return found


class _OffsetsTold(Observer):
    """The offsets of a group, as its entries tell them."""

    def __init__(self) -> None:
        self.changes: list[OffsetChange] = []
        self._group = Group("", "")
        self._is_complete = False
        self._seen: set[TopicPartition] = set()
        self._generation: int | None = None
        self._pending: dict[int, tuple[TransactionalOffsetsCommitted, Cause]] = {}

    def on_begin(self, entry: JournalEntry) -> None:
        """Begin with a group that has no offsets, as far as is known."""
        self._group = Group(entry.group_id, entry.incarnation)
        self._is_complete = entry.sequence == 1
        self._seen, self._pending = set(), {}
        self._generation = 0 if self._is_complete else None

    def on_entry(self, entry: JournalEntry) -> None:
        record = entry.record
        match record:
            case GenerationStarted(generation=generation):
                self._generation = generation
            case GroupEpochBumped(epoch=epoch) | ConsumerGroupFormed(epoch=epoch):
                self._generation = epoch
            case ClassicGroupFormed():
                self._generation = 0
            case TransactionalOffsetsCommitted():
                self._pending[record.producer_id] = record, entry.cause
                self._apply(entry)
            case (
                GroupDeleted() | QuarantinedStateDropped() | OffsetsCommitted() | OffsetsDeleted() | TransactionEnded()
            ):
                self.changes += self._change(entry)

    def _change(self, entry: JournalEntry) -> Iterator[OffsetChange]:
        record, cause, transactional_id = entry.record, entry.cause, None
        touched = self._touched(record)
        before = {partition: self._offset(partition) for partition in touched}
        if isinstance(record, TransactionEnded) and record.producer_id in self._pending:
            pending, cause = self._pending.pop(record.producer_id)
            transactional_id = pending.transactional_id
        self._apply(entry)
        for partition in touched:
            after = self._offset(partition)
            if after is before[partition]:
                continue
            knows_before = self._is_complete or partition in self._seen
            self._seen.add(partition)
            yield OffsetChange(
                *(entry, self._generation, partition, before[partition], after, knows_before, cause, transactional_id)
            )

    def _touched(self, record: Record) -> list[TopicPartition]:
        group = self._group
        match record:
            case OffsetsCommitted(offsets=committed):
                return list(dict.fromkeys(TopicPartition(each.topic, each.partition) for each in committed))
            case OffsetsDeleted(offsets=deleted):
                named = (TopicPartition(each.topic, partition) for each in deleted for partition in each.partitions)
                return list(dict.fromkeys(named))
            case TransactionEnded(producer_id=producer_id):
                transaction = group.open_transactions.get(producer_id)
                offsets = {} if transaction is None else transaction.offsets
                return [TopicPartition(topic, partition) for topic in offsets for partition in offsets[topic]]
            case _:
                return [TopicPartition(topic, partition) for topic, partition, _ in group.committed_offsets()]

    def _apply(self, entry: JournalEntry) -> None:
        self._group.sequence = entry.sequence
        # The journal may no longer have the offsets of a transaction that ends.
        with suppress(KeyError):
            apply(self._group, entry.record, entry.timestamp)

    def _offset(self, partition: TopicPartition) -> CommittedOffset | None:
        return self._group.offsets.get(partition.topic, {}).get(partition.partition)
