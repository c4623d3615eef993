"""The rebalances of all groups, as they end."""

from collections.abc import Iterator
from typing import NamedTuple

from coordinator_logic.records import GroupDeleted, JournalEntry
from streaming.explain.story.model import Rebalance
from streaming.explain.story.telling import StoryTeller


class GroupRebalance(NamedTuple):
    """A rebalance of a group that has ended."""

    group_id: str
    rebalance: Rebalance


class RebalancesOfAllGroups:
    """Takes the entries of all groups, each group's in their order, and yields each rebalance when it has ended.

    A rebalance that has been yielded is forgotten, and so is a group that is deleted.
    """

    def __init__(self) -> None:
        self._tellers: dict[str, StoryTeller] = {}
        self._deleted: dict[str, str] = {}
        """The last incarnation of each group that was deleted: its entries may be written again."""

    def add(self, entry: JournalEntry) -> Iterator[GroupRebalance]:
        """Take the next entry; the rebalances that end with it."""
        if self._deleted.get(entry.group_id) == entry.incarnation:
            return
        teller = self._tellers.get(entry.group_id)
        if teller is None:
            teller = self._tellers[entry.group_id] = StoryTeller(entry.group_id)
        teller.add(entry)
        for rebalance in teller.take_ended():
            yield GroupRebalance(entry.group_id, rebalance)
        if isinstance(entry.record, GroupDeleted):
            del self._tellers[entry.group_id]
            self._deleted[entry.group_id] = entry.incarnation
