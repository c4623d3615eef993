"""Counts the committed offsets that a record makes lower. Kafka accepts such a commit; an operator may want to know."""

from coordinator_logic.committed_offsets import Offsets
from coordinator_logic.group import Group
from coordinator_logic.records.definitions import OffsetsCommitted, Record, TransactionEnded


def moves_back(group: Group, record: Record) -> int:
    """How many partitions get a lower committed offset when the record is applied, which it is not yet."""
    match record:
        case OffsetsCommitted():
            offsets = group.offsets
            return sum(_is_lower(offsets, entry.topic, entry.partition, entry.offset) for entry in record.offsets)
        case TransactionEnded(committed=True):
            return _of_transaction(group, record)
        case _:
            return 0


def _is_lower(offsets: Offsets, topic: str, partition: int, offset: int) -> bool:
    partitions = offsets.get(topic)
    existing = None if partitions is None else partitions.get(partition)
    return existing is not None and offset < existing.offset


def _of_transaction(group: Group, record: TransactionEnded) -> int:
    """Pending offsets that are older than the committed one are not applied."""
    count = 0
    for topic, partitions in group.open_transactions[record.producer_id].offsets.items():
        committed = group.offsets.get(topic, {})
        for partition, pending in partitions.items():
            existing = committed.get(partition)
            count += existing is not None and existing.sequence < pending.sequence and pending.offset < existing.offset
    return count
