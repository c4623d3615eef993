"""Counts the committed offsets that a record makes lower. Kafka accepts such a commit; an operator may want to know."""

from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.group import Group
from coordinator_logic.group.record import Record
from coordinator_logic.records.definitions import OffsetsCommitted, TransactionEnded


def moves_back(group: Group, record: Record) -> int:
    """How many partitions get a lower committed offset when the record is applied, which it is not yet."""
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
    committed: dict[int, CommittedOffset] | None = None
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
