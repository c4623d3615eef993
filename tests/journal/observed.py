"""Observers that are told of a journal."""

from collections.abc import Iterable

from coordinator_logic.records import JournalEntry
from streaming.journal.fold import GroupFold, ObserverT


def observed(observer: ObserverT, entries: Iterable[JournalEntry]) -> ObserverT:
    """The observer, after these entries of one group."""
    fold = GroupFold(observer)
    for entry in entries:
        fold.add(entry)
    return observer
