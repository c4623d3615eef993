"""One group's entries of the journal, read from the one partition that has them."""

from collections.abc import Callable, Iterator

from coordinator_logic.records import JournalEntry
from streaming.client.key_partition import partition_of_key
from streaming.journal.reader import JournalReader, ReadingProgress


class GroupJournal:
    """The entries of one group, in their order; entries may repeat.

    The job chooses the partition of an entry by its key, the group id, with Kafka's default rule, and of the partitions
    that the topic had at first. So the group lies in one partition. If the one that the rule gives by the present count
    has no entry of the group, all are read: partitions were added.

    Args:
        reader: A reader of the journal, which nothing else uses.
        group_id: The group.
        report: Is called with a line about the progress of a reading that takes long.
    """

    def __init__(
        self, reader: JournalReader, group_id: str, report: Callable[[str], object] = lambda _line: None
    ) -> None:
        self._reader = reader
        self._key = group_id.encode()
        self._report = report
        self._partitions = frozenset({partition_of_key(self._key, len(reader.partitions))})

    def entries(self) -> Iterator[JournalEntry]:
        """The entries up to the journal's present end."""
        has_entries = False
        for entry in self._read(self._partitions):
            has_entries = True
            yield entry
        everywhere = frozenset(self._reader.partitions)
        if not has_entries and everywhere != self._partitions:
            self._partitions = everywhere
            yield from self._read(self._partitions)

    def further(self) -> Iterator[JournalEntry | None]:
        """What comes after :meth:`entries`, without an end; None whenever nothing has come for a moment."""
        return self._reader.further(self._key)

    def _read(self, partitions: frozenset[int]) -> Iterator[JournalEntry]:
        progress = ReadingProgress(self._reader.count(partitions), self._report)
        for entry in self._reader.entries(partitions, key=self._key, on_read=progress.add):
            if entry is not None:
                yield entry
