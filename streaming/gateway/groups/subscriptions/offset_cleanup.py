"""Has all groups delete the offsets of topics that were deleted, whatever their type and whoever serves their members.

A broker's coordinator learns of a deletion from the cluster's metadata, and deletes the topic's offsets in all its
groups. Here each gateway compares the list of all topics with the one before, and tells every group in the directory
which topics are gone. It also sweeps: when it has started, and from time to time, it compares the ids that groups keep
with their offsets to the topics that exist. That finds what was deleted while no gateway looked.

Several gateways may tell a group the same: it ignores what it does not have. An offset of which no topic id is known is
not swept, since nothing says that its topic ever existed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable

from kio.schema.errors import ErrorCode

from coordinator_logic.apis import OFFSET_FETCH, TOPICS_DELETED
from coordinator_logic.errors import Error
from coordinator_logic.messages import FetchedTopic, GroupToFetch, OffsetFetchRequest, TopicsDeletedRequest
from coordinator_logic.records import QUARANTINED
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.list_requests import MAX_ENTRIES
from streaming.gateway.groups.look_schedule import LookSchedule
from streaming.gateway.groups.subscriptions.repeating import repeat
from streaming.gateway.groups.subscriptions.topic_notifier import GONE_AFTER_SECONDS, GROUPS_AT_ONCE, remember
from streaming.gateway.security.topic_catalog import NOT_FOUND
from streaming.gateway.wire.loop_share import loop_time

LISTING_SECONDS = 30.0
"""How often all topics are listed if nothing is known to have changed."""
SWEEP_SECONDS = 3_600.0
"""How often the offsets of all groups are compared with the topics that exist."""
RETRY_SECONDS = 30.0
"""How long after a sweep those groups are asked again that did not answer."""
DIRECTORY_SECONDS = 1.0
"""How often a gateway that has started looks whether it has read the directory."""
SWEPT_AT_ONCE = 10
"""How many groups are asked for all their offsets at a time; each answer may have a megabyte."""
PROBLEM = "groups do not learn of deleted topics at the moment"

Topic = tuple[str, str]
"""The name and the id of a topic."""


class OffsetCleanup:
    """Finds out which topics were deleted, and tells the groups. For one event loop.

    looks: when all topics are listed.
    """

    def __init__(self, backend: GroupBackend, looks: LookSchedule) -> None:
        self._backend = backend
        self._catalog = backend.catalog
        self._looks = looks
        self._existing: set[Topic] = set()
        self._missing_since: dict[Topic, float] = {}
        self._deleted: dict[Topic, None] = {}
        self._untold: dict[str, set[Topic]] = {}
        self._unswept: set[str] = set()
        self._sweep_at = float("-inf")

    async def run(self) -> None:
        """Look and sweep until cancelled."""
        # Only what was listed once can be missed later.
        self._looks.hasten()
        looking = repeat(self._looks.wait, self.look, PROBLEM)
        await asyncio.gather(looking, repeat(self._until_next_sweep, self.sweep, PROBLEM))

    # ---- deletions while the gateway looks ---------------------------------------------------------------------------

    async def look(self) -> None:
        """List all topics, and tell all groups of those that are gone. Raises :class:`CoordinatorNotAvailable`."""
        began_at = loop_time()
        listing = await self._catalog.all_topics(0.0)
        self._looks.looked(loop_time() - began_at)
        now = {(topic.name, topic.topic_id) for topic in listing.values()} - self._deleted.keys()
        # A topic can come and go from one look to the next.
        self._existing |= self._backend.committed_topics - self._deleted.keys()
        self._backend.committed_topics.clear()
        missing = self._existing - now
        self._existing |= now
        self._missing_since = {topic: self._missing_since.get(topic, began_at) for topic in missing}
        # A broker that lags behind may not know a topic yet.
        due = {topic for topic, since in self._missing_since.items() if began_at - since >= GONE_AFTER_SECONDS}
        gone = await self._gone(due)
        if gone:
            for entry in self._backend.directory.entries():
                self._untold.setdefault(entry.group_id, set()).update(gone)
        await self._tell_all()

    async def _gone(self, missing: Collection[Topic]) -> set[Topic]:
        """Which of the topics do not exist, by the brokers' word about their names and about their ids."""
        if not missing:
            return set()
        by_name = await self._catalog.find_now(name for name, _ in missing)
        by_id = await self._catalog.names_of([topic_id for _, topic_id in missing])
        gone = set()
        for topic in missing:
            name, topic_id = topic
            found = by_name.get(name)
            if found is None or topic_id in by_id or found.topic_id == topic_id:
                continue
            if found.error_code is ErrorCode.topic_authorization_failed:
                # The gateway may describe it no longer: it may well exist.
                self._forget(topic)
            elif found.topic_id or found.error_code in NOT_FOUND:
                gone.add(topic)
                self._forget(topic)
        remember(self._deleted, gone)
        return gone

    def _forget(self, topic: Topic) -> None:
        self._existing.discard(topic)
        self._missing_since.pop(topic, None)

    # ---- deletions that nobody saw -----------------------------------------------------------------------------------

    async def sweep(self) -> None:
        """Find offsets of topics that are gone, in all groups that are not swept yet.

        Raises :class:`CoordinatorNotAvailable`.
        """
        if not self._unswept:
            entries = self._backend.directory.entries()
            self._unswept = {each.group_id for each in entries if each.offsets and each.group_state != QUARANTINED}
        listing = await self._catalog.all_topics(LISTING_SECONDS)
        existing = {(topic.name, topic.topic_id) for topic in listing.values()}
        suspected: dict[str, set[Topic]] = {}

        async def ask(group_id: str) -> None:
            fetched = await self._offsets_of(group_id)
            if fetched is not None:
                self._unswept.discard(group_id)
                topics = {(topic.name, topic.topic_id) for topic in fetched if topic.topic_id} - existing
                if topics:
                    suspected[group_id] = topics

        await _each(ask, list(self._unswept), SWEPT_AT_ONCE)
        if suspected:
            await asyncio.sleep(GONE_AFTER_SECONDS)
            gone = await self._gone(set().union(*suspected.values()))
            for group_id, topics in suspected.items():
                if topics & gone:
                    self._untold.setdefault(group_id, set()).update(topics & gone)
            await self._tell_all()
        self._sweep_at = loop_time() + (RETRY_SECONDS if self._unswept else SWEEP_SECONDS)

    async def _offsets_of(self, group_id: str) -> list[FetchedTopic] | None:
        """The committed offsets of a group, none for one that refuses; None if the coordinator does not answer."""
        body = OffsetFetchRequest(groups=[GroupToFetch(group_id)])
        version = OFFSET_FETCH.max_version
        response = await self._backend.read(OFFSET_FETCH, version, group_id, body, self._backend.caller)
        (group,) = response.groups
        return None if Error(group.error_code).retriable else group.topics

    async def _until_next_sweep(self) -> None:
        while not self._backend.directory.is_complete:
            await asyncio.sleep(DIRECTORY_SECONDS)
        await asyncio.sleep(max(0.0, self._sweep_at - loop_time()))
        self._sweep_at = loop_time() + RETRY_SECONDS

    # ---- groups ------------------------------------------------------------------------------------------------------

    async def _tell_all(self) -> None:
        """Tell the groups what they have not confirmed to know."""
        await _each(self._tell, list(self._untold), GROUPS_AT_ONCE)

    async def _tell(self, group_id: str) -> None:
        topics = sorted(self._untold.pop(group_id, ()))
        for first in range(0, len(topics), MAX_ENTRIES):
            part = topics[first : first + MAX_ENTRIES]
            ids: dict[str, list[str]] = {}
            for name, topic_id in part:
                ids.setdefault(name, []).append(topic_id)
            body = TopicsDeletedRequest(list(ids), ids)
            response = await self._backend.request(TOPICS_DELETED, 0, group_id, body, self._backend.caller)
            if Error(response.error_code).retriable:
                self._untold.setdefault(group_id, set()).update(part)


async def _each(work: Callable[[str], Awaitable[None]], group_ids: Iterable[str], at_once: int) -> None:
    """Do the work for each group, for a few at a time."""
    free = asyncio.Semaphore(at_once)

    async def limited(group_id: str) -> None:
        async with free:
            await work(group_id)

    await asyncio.gather(*map(limited, group_ids))
