"""Which rebalances are to be published: those that end behind the positions until which all have been."""

from collections.abc import Mapping

from coordinator_logic.records import JournalEntry
from streaming.explain.publishing.records import PublishedRebalance, published
from streaming.explain.story.of_all_groups import GroupRebalance, RebalancesOfAllGroups
from streaming.journal.reader import JournalPlace


class Outbox:
    """Keeps the rebalances that end with entries of the journal and are to be published, until :meth:`drain`.

    Entries before the positions belong to the story, but what ends with them has been published.

    Args:
        positions: By partition of the journal, the offset of the first entry of which nothing has been published.
    """

    def __init__(self, positions: Mapping[int, int]) -> None:
        self._positions = dict(positions)
        self._story = RebalancesOfAllGroups()
        self._waiting: list[GroupRebalance] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, entry: JournalEntry, place: JournalPlace) -> None:
        """Add the next entry, which is at this place of the journal."""
        ended = list(self._story.add(entry))
        if place.offset >= self._positions.get(place.partition, 0):
            self._positions[place.partition] = place.offset + 1
            self._waiting += ended

    def drain(self) -> list[PublishedRebalance]:
        """Remove the rebalances and return their records, which must be published in one transaction.

        Otherwise the positions, which all of them have, would include some that were not published.
        """
        records = [published(told, self._positions) for told in self._waiting]
        self._waiting.clear()
        return records
