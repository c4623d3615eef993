"""The rebalances of all groups, as they end."""

from collections.abc import Iterator
from typing import NamedTuple

from coordinator_logic.records import GroupDeleted, JournalEntry
from streaming.explain.story.model import Rebalance
from streaming.explain.story.telling import StoryTeller
from streaming.journal.fold import GroupFold, JournalFold


class GroupRebalance(NamedTuple):
    """A rebalance of a group that has ended."""

    group_id: str
    rebalance: Rebalance


class RebalancesOfAllGroups:
    """Yields each rebalance of any group when it has ended; the entries of each group come in their order.

    A rebalance that has been yielded is forgotten, and so is a group that is deleted. Those that ended before ``since``
    (ms) are not yielded. Their entries are to be added all the same: later rebalances follow from them.
    """

    def __init__(self, since: int = 0) -> None:
        self._since = since
        self._journal = JournalFold(lambda group_id: GroupFold(StoryTeller(group_id)))

    def add(self, entry: JournalEntry) -> Iterator[GroupRebalance]:
        """Add the next entry; the rebalances that end with it."""
        fold = self._journal.add(entry)
        if fold is None:
            return
        for rebalance in fold.observer.pop_ended():
            if rebalance.ended is not None and rebalance.ended >= self._since:
                yield GroupRebalance(entry.group_id, rebalance)
        if isinstance(entry.record, GroupDeleted):
            self._journal.forget(entry.group_id, entry.incarnation)
