"""The coordinator's own topics: their names, their ids, and what the gateway refuses to whom."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Set

from streaming.gateway.security.internal_topics.rules import InternalTopicRules
from streaming.gateway.wire.futures import retrieve_failure

FindTopicIds = Callable[[Collection[str]], Awaitable[Mapping[bytes, str]]]
"""Returns the names of existing topics by their ids, for the given names. Raises an exception if no broker answers."""

FOREIGN_IDS = 100_000
"""How many ids of other topics are remembered at least, and about twice as many at most."""


class InternalTopics:
    """The topics, with what is known of ids.

    rules: what is refused of them.
    find_ids: asks the brokers for the topics' ids.
    """

    def __init__(self, rules: InternalTopicRules, find_ids: FindTopicIds) -> None:
        self.rules = rules
        self._find_ids = find_ids
        self._name_by_id: dict[bytes, str] = {}
        # What one question of the brokers has resolved comes into the same set.
        self._foreign: set[bytes] = set()
        self._foreign_before: set[bytes] = set()
        self._unresolved: set[bytes] = set()
        self._asking: asyncio.Task[None] | None = None

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of an internal topic by its id; None for another topic."""
        return self._name_by_id.get(topic_id)

    def without_foreign(self, topic_ids: Set[bytes]) -> Set[bytes]:
        """Return the ids that are not known to be those of other topics."""
        left = topic_ids - self._foreign
        return left - self._foreign_before if left else left

    def unknown(self, topic_ids: Set[bytes]) -> Set[bytes]:
        """Return the ids of which it is not known yet whether they are internal topics."""
        return self.without_foreign(topic_ids) - self._name_by_id.keys()

    async def resolve(self, topic_ids: Set[bytes]) -> None:
        """Find out which ids are internal topics; afterwards none of them is :meth:`unknown`.

        A topic never gets another id or name, so each id is resolved once. Raises what ``find_ids`` raises.
        """
        self._unresolved |= self.unknown(topic_ids)
        while self.unknown(topic_ids):
            if self._asking is None or self._asking.done():
                self._asking = asyncio.get_running_loop().create_task(self._ask())
                self._asking.add_done_callback(retrieve_failure)
            await asyncio.shield(self._asking)

    async def _ask(self) -> None:
        """Resolve the ids that wait now. A question that was asked earlier may have missed a topic created since."""
        asked, self._unresolved = self._unresolved, set()
        self._name_by_id |= await self._find_ids(self.rules.all)
        self._foreign |= asked - self._name_by_id.keys()
        if len(self._foreign) > FOREIGN_IDS:
            self._foreign_before, self._foreign = self._foreign, set()
