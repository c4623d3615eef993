"""The offsets that a group commits while the journal is read, and how far they are behind."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from coordinator_logic.group import Group
from coordinator_logic.group.record import Record
from coordinator_logic.records import GroupDeleted, OffsetRecord, QuarantinedStateDropped, apply

EndOffsets = Mapping[tuple[str, int], int]
"""The offset of the next record of partitions, by topic and partition."""


class Positions:
    """The committed offsets of one group, as far as the noted records tell."""

    def __init__(self) -> None:
        self._group = Group("", "")

    def note(self, record: Record) -> None:
        """Note a record of the group's journal; other records than those of offsets change nothing."""
        if isinstance(record, GroupDeleted | QuarantinedStateDropped):
            self._group = Group("", "")
        elif isinstance(record, OffsetRecord):
            self._group.sequence += 1
            # The beginning of a transaction may be from before the first record that was noted.
            with suppress(KeyError):
                apply(self._group, record, timestamp=0)

    def partitions(self) -> Iterable[tuple[str, int]]:
        """The partitions with a committed offset."""
        return self.committed().keys()

    def committed(self) -> dict[tuple[str, int], int]:
        """The committed offsets, by topic and partition; a copy."""
        return {(topic, number): committed.offset for topic, number, committed in self._group.committed_offsets()}

    def lag(self, ends: EndOffsets) -> int | None:
        """How many records the group has yet to read of the partitions whose end is known; None without one."""
        lags = [max(0, ends[key] - offset) for key, offset in self.committed().items() if key in ends]
        return sum(lags) if lags else None
