"""The only code that applies records to a group, and what it would move back."""

from collections.abc import Mapping

from coordinator_logic.committed_offsets import CommittedOffset, Offsets
from coordinator_logic.group import Group, dead_group
from coordinator_logic.group.part import FORMATIONS
from coordinator_logic.group.record import Record
from coordinator_logic.group.transactions import OpenTransaction
from coordinator_logic.records.definitions import (
    GroupConfigChanged,
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    QuarantinedStateDropped,
    TopicPartitions,
    TransactionalOffsetsCommitted,
    TransactionEnded,
)
from coordinator_logic.states import State


def _store_offsets(offsets: Offsets, committed: list[OffsetCommitted], sequence: int) -> None:
    for entry in committed:
        offsets.setdefault(entry.topic, {})[entry.partition] = stored_offset(entry, sequence)


def stored_offset(entry: OffsetCommitted, sequence: int) -> CommittedOffset:
    """What a group stores of an offset; ``sequence`` is that of the journal entry."""
    return CommittedOffset(
        entry.offset,
        entry.leader_epoch,
        entry.metadata,
        entry.commit_timestamp,
        entry.expire_timestamp,
        sequence,
        entry.topic_id,
    )


def _store_pending_offsets(group: Group, record: TransactionalOffsetsCommitted) -> None:
    pending = group.pending_offsets
    transaction = group.open_transactions.setdefault(record.producer_id, OpenTransaction(record.producer_epoch))
    transaction.producer_epoch = record.producer_epoch
    for entry in record.offsets:
        pending.add(record.producer_id, entry.topic, entry.partition)
    _store_offsets(transaction.offsets, record.offsets, group.sequence)


def _end_transaction(group: Group, record: TransactionEnded) -> None:
    index = group.pending_offsets
    transaction = group.open_transactions.pop(record.producer_id)
    for topic, partitions in transaction.offsets.items():
        index.remove(record.producer_id, topic, partitions)
    if not record.committed:
        return
    for topic, partitions in transaction.offsets.items():
        committed = group.offsets.setdefault(topic, {})
        for partition, pending in partitions.items():
            existing = committed.get(partition)
            # An offset that was committed outside of the transaction in the meantime is newer.
            if existing is None or pending.sequence > existing.sequence:
                committed[partition] = pending


def _delete_offsets(group: Group, record: OffsetsDeleted) -> None:
    pending = group.pending_offsets
    for entry in record.offsets:
        for partition in entry.partitions:
            _delete_offset(group.offsets, entry, partition)
            for producer_id in list(pending.producers(entry.topic, partition)):
                if _delete_offset(group.open_transactions[producer_id].offsets, entry, partition):
                    pending.remove(producer_id, entry.topic, (partition,))


def _delete_offset(offsets: Offsets, deleted: TopicPartitions, partition: int) -> bool:
    """Delete the offset of a partition, if there is one and it is of the topic; returns whether it did."""
    partitions = offsets.get(deleted.topic, {})
    committed = partitions.get(partition)
    if committed is None or not committed.is_of(deleted.topic_id):
        return False
    del partitions[partition]
    if not partitions:
        del offsets[deleted.topic]
    return True


def apply(group: Group, record: Record, timestamp: int) -> None:
    """Apply a record to a group; ``timestamp`` is that of its journal entry, ms since the epoch.

    The group's ``sequence`` must already be the entry's. A record that does not fit the group is a defect of the
    handler that made it. Raises :class:`~coordinator_logic.states.IllegalTransition` for a transition that is not in
    the type's table, :class:`~coordinator_logic.states.IllegalState` for a member that already exists or a record that
    the group's type does not have, and ``KeyError`` for a member or a transaction that does not exist.
    """
    match record:
        case OffsetsCommitted():
            _store_offsets(group.offsets, record.offsets, group.sequence)
        case TransactionalOffsetsCommitted():
            _store_pending_offsets(group, record)
        case TransactionEnded():
            _end_transaction(group, record)
        case OffsetsDeleted():
            _delete_offsets(group, record)
        case GroupCreated():
            group.part.state_timestamp = timestamp
        case GroupConfigChanged():
            group.configs = dict(record.configs)
        case GroupDeleted() | QuarantinedStateDropped():
            _end(group, timestamp)
        case _ if (form := FORMATIONS.get(type(record))) is not None:
            group.part = form(group.part, record, timestamp)
        case _:
            group.part.apply(group.group_id, record, timestamp)


def _end(group: Group, timestamp: int) -> None:
    group.part.end(group.group_id, timestamp)
    group.configs = {}
    group.offsets.clear()
    group.open_transactions.clear()
    group.__dict__.pop("pending_offsets", None)


def fold(entries: list[JournalEntry]) -> Group | None:
    """Rebuild a group from its journal: every field that records change, without the working memory.

    ``entries`` are one group's, in order; repeated entries are skipped. Returns None if the group was deleted last,
    or if its creation is not among the entries.
    """
    group: Group | None = None
    for entry in entries:
        if isinstance(entry.record, GroupCreated) and (group is None or group.incarnation != entry.incarnation):
            group = Group(entry.group_id, entry.incarnation)
        elif isinstance(entry.record, QuarantinedStateDropped):
            group = dead_group(entry.group_id, entry.incarnation)
        if group is None or entry.incarnation != group.incarnation or entry.sequence <= group.sequence:
            continue
        group.sequence = entry.sequence
        apply(group, entry.record, entry.timestamp)
    return None if group is None or group.state is State.DEAD else group


def moves_back(group: Group, record: Record) -> int:
    """How many partitions get a lower committed offset when the record is applied, which it is not yet.

    Kafka accepts such a commit; an operator may want to know.
    """
    match record:
        case OffsetsCommitted():
            return _of_commit(group, record)
        case TransactionEnded(committed=True):
            return _of_transaction(group, record)
        case _:
            return 0


def _of_commit(group: Group, record: OffsetsCommitted) -> int:
    # This runs for every partition of every commit.
    offsets, count = group.offsets, 0
    topic: str | None = None
    committed: Mapping[int, CommittedOffset] | None = None
    for entry in record.offsets:
        if entry.topic != topic:
            topic = entry.topic
            committed = offsets.get(topic)
        if committed is not None:
            existing = committed.get(entry.partition)
            if existing is not None and entry.offset < existing.offset:
                count += 1
    return count


def _of_transaction(group: Group, record: TransactionEnded) -> int:
    """Pending offsets that are older than the committed one are not applied."""
    count = 0
    for topic, partitions in group.open_transactions[record.producer_id].offsets.items():
        committed = group.offsets.get(topic, {})
        for partition, pending in partitions.items():
            existing = committed.get(partition)
            count += existing is not None and existing.sequence < pending.sequence and pending.offset < existing.offset
    return count
