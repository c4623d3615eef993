"""Publishes the rebalances that end behind the positions until which all have been published.

Soon, and not each rebalance in a transaction of its own.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from coordinator_logic.records import JournalEntry
from streaming.explain.publishing.records import PublishedRebalance, published
from streaming.explain.story.of_all_groups import GroupRebalance, RebalancesOfAllGroups
from streaming.journal.reader import JournalPlace

MOST_TOGETHER = 500
"""How many rebalances a transaction has at most, but for those that end with the same entry."""

LONGEST_WAIT_SECONDS = 0.5
"""How long a rebalance waits for others while entries keep coming."""


class Outbox:
    """Keeps the rebalances that end with entries of the journal and are to be published, until :meth:`drain`.

    Entries before the positions belong to the story, but what ends with them has been published.

    Args:
        positions: By partition of the journal, the offset of the first entry of which nothing has been published.
        since: What ended before this time (ms) is not published.
    """

    def __init__(self, positions: Mapping[int, int], since: int = 0) -> None:
        self._positions = dict(positions)
        self._story = RebalancesOfAllGroups(since)
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


def sent(
    entries: Iterable[JournalEntry | None],
    place: Callable[[], JournalPlace],
    outbox: Outbox,
    publish: Callable[[Sequence[PublishedRebalance]], object],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[PublishedRebalance]:
    """Publish the rebalances that end with these entries; yields each once it is published.

    Args:
        entries: Entries of the journal; None when none has come for a moment.
        place: The place of the entry that came last.
        outbox: Chooses what is to be published.
        publish: Publishes records in one transaction.
        clock: A monotonic clock, in seconds.
    """
    waits_since = 0.0
    for entry in entries:
        if entry is not None:
            was_empty = not len(outbox)
            outbox.add(entry, place())
            if was_empty:
                waits_since = clock()
        is_due = entry is None or len(outbox) >= MOST_TOGETHER or clock() - waits_since >= LONGEST_WAIT_SECONDS
        if len(outbox) and is_due:
            yield from _send(outbox, publish)
    if len(outbox):
        yield from _send(outbox, publish)


def _send(outbox: Outbox, publish: Callable[[Sequence[PublishedRebalance]], object]) -> Sequence[PublishedRebalance]:
    records = outbox.drain()
    publish(records)
    return records
