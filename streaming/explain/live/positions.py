"""The offsets that a group commits while the journal is read, and how far they are behind."""

from collections.abc import Iterable, Mapping

from coordinator_logic.group.record import Record
from coordinator_logic.records import (
    GroupDeleted,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    TransactionalOffsetsCommitted,
    TransactionEnded,
)

EndOffsets = Mapping[tuple[str, int], int]
"""The offset of the next record of partitions, by topic and partition."""


class Positions:
    """The committed offsets of one group, as far as the noted records tell."""

    def __init__(self) -> None:
        self._committed: dict[tuple[str, int], int] = {}
        self._pending: dict[int, list[OffsetCommitted]] = {}

    def note(self, record: Record) -> None:
        """Note a record of the group's journal; other records than those of offsets change nothing."""
        match record:
            case OffsetsCommitted():
                self._commit(record.offsets)
            case TransactionalOffsetsCommitted():
                self._pending.setdefault(record.producer_id, []).extend(record.offsets)
            case TransactionEnded():
                pending = self._pending.pop(record.producer_id, [])
                self._commit(pending if record.committed else [])
            case OffsetsDeleted():
                for deleted in record.offsets:
                    for partition in deleted.partitions:
                        self._committed.pop((deleted.topic, partition), None)
            case GroupDeleted():
                self._committed.clear()
                self._pending.clear()

    def partitions(self) -> Iterable[tuple[str, int]]:
        """The partitions with a committed offset."""
        return self._committed.keys()

    def committed(self) -> dict[tuple[str, int], int]:
        """The committed offsets, by topic and partition; a copy."""
        return dict(self._committed)

    def lag(self, ends: EndOffsets) -> int | None:
        """How many records the group has yet to read of the partitions whose end is known; None without one."""
        lags = [max(0, ends[key] - offset) for key, offset in self._committed.items() if key in ends]
        return sum(lags) if lags else None

    def _commit(self, offsets: Iterable[OffsetCommitted]) -> None:
        for one in offsets:
            self._committed[one.topic, one.partition] = one.offset
