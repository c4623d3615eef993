"""Sends what an outbox holds: soon, and not each rebalance in a transaction of its own."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from coordinator_logic.records import JournalEntry
from streaming.explain.publishing.outbox import Outbox
from streaming.explain.publishing.records import PublishedRebalance
from streaming.journal.reader import JournalPlace

MOST_TOGETHER = 500
"""How many rebalances a transaction has at most, but for those that end with the same entry."""

LONGEST_WAIT_SECONDS = 0.5
"""How long a rebalance waits for others while entries keep coming."""


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
