"""Tells groups what has become of their topics: that one has grown, is gone, or exists under another id.

A broker's coordinator learns that from the cluster's metadata. Here each gateway looks at the topics of the groups
whose members it serves, when :class:`.LookSchedule` says so, and sends TopicsDescribed and TopicsDeleted. Several
gateways may tell a group the same: it ignores what it knows. Topics that begin to match a pattern go with the heartbeat
of a member that may see them, see :mod:`.heartbeat_topics`; this module only keeps the list of all topics current.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Set
from typing import TypeVar

from kio.schema.errors import ErrorCode

from coordinator_logic.apis import TOPICS_DELETED, TOPICS_DESCRIBED
from coordinator_logic.errors import Error
from coordinator_logic.messages import TopicDescription, TopicsDeletedRequest, TopicsDescribedRequest
from streaming.contract.output.text import counted
from streaming.contract.rights.refusals import not_allowed
from streaming.contract.rights.table import Operation
from streaming.gateway.groups.backend import FoundGroup, GroupBackend
from streaming.gateway.groups.list_requests import MAX_ENTRIES
from streaming.gateway.groups.subscriptions.repeating import repeat
from streaming.gateway.groups.watched_groups import WatchedGroup
from streaming.gateway.security.topic_catalog import NOT_FOUND, described_topic
from streaming.gateway.wire.loop_share import loop_time

log = logging.getLogger(__name__)

T = TypeVar("T")

GONE_AFTER_SECONDS = 1.0
"""How long a topic must be missing, in two looks at least: a broker that lags behind may not know it yet. One look
is enough for a topic that a client has deleted through this gateway."""
UNKNOWN_PARTITIONS = 0
"""The partition count of a topic of which only the id is known. A group is told of the topic again."""
MAX_FORMER_IDS = 100_000
GROUPS_AT_ONCE = 50


class TopicNotifier:
    """Looks at the topics of the watched groups, and tells the groups of changes."""

    def __init__(self, backend: GroupBackend) -> None:
        self._backend = backend
        self._catalog = backend.catalog
        self._watched = backend.watched
        self._current: dict[str, TopicDescription] = {}
        self._missing_since: dict[str, float] = {}
        self._looked_at = float("-inf")
        self._deleted_ids: dict[str, None] = {}
        self._gone: Set[str] = frozenset()
        self._former_ids: dict[str, None] = {}
        self._hidden: Set[str] = frozenset()
        self._events = asyncio.Semaphore(GROUPS_AT_ONCE)

    async def run(self) -> None:
        """Refresh whenever a look is due, until cancelled."""
        await repeat(self._backend.looks.wait, self.refresh, "groups do not learn of changed topics at the moment")

    def topics_changed(self, deleted: Collection[str] = ()) -> None:
        """A client has changed topics of the cluster, or may have: look at once.

        deleted: the names of topics of which a broker has answered that it has deleted them.
        """
        known = [self._current[name].topic_id for name in deleted if name in self._current]
        remember(self._deleted_ids, known)
        self._catalog.changed()

    async def refresh(self) -> None:
        """Look at all topics once, and tell the groups. Raises :class:`CoordinatorNotAvailable`."""
        groups = self._watched.living(time.monotonic())
        if not groups:
            self._missing_since = {}
            return
        await self._for_each((group for group in groups if group.needs_lookup), self._look_up)
        changed = await self._look_at_topics(groups)
        affected = (
            group
            for group in groups
            if group.has_changed or not changed.isdisjoint(group.told) or not changed.isdisjoint(group.names)
        )
        await self._for_each(affected, self._tell)

    async def _for_each(self, groups: Iterable[WatchedGroup], work: Callable[[WatchedGroup], Awaitable[None]]) -> None:
        async def limited(group: WatchedGroup) -> None:
            async with self._events:
                await work(group)

        await asyncio.gather(*map(limited, groups))

    async def _look_up(self, group: WatchedGroup) -> None:
        asked_at = time.monotonic()
        found = await self._found(group.group_id)
        if found is Error.GROUP_ID_NOT_FOUND:
            self._watched.remove(group.group_id)
        elif not isinstance(found, Error):
            group.found(found.subscriptions, asked_at, time.monotonic())
            for name, topic_id in found.assigned.items():
                group.told.setdefault(name, TopicDescription(name, topic_id, UNKNOWN_PARTITIONS))

    async def _found(self, group_id: str) -> FoundGroup | Error:
        """Look up a group of whichever type, first as one of the type in the directory."""
        of_type = self._backend.type_of(group_id)
        found: FoundGroup | Error = Error.GROUP_ID_NOT_FOUND
        for each in sorted(self._backend.types.values(), key=lambda each: each is not of_type):
            if each.look_up is not None:
                found = await each.look_up(self._backend, group_id)
            if found is not Error.GROUP_ID_NOT_FOUND:
                break
        return found

    # ---- topics --------------------------------------------------------------------------------------------------

    async def _look_at_topics(self, groups: Iterable[WatchedGroup]) -> Set[str]:
        """Bring the topics up to date. Returns the names of those that have changed or are gone."""
        names: set[str] = set()
        needs_listing = False
        for group in groups:
            names |= self._followed(group)
            needs_listing = needs_listing or group.has_patterns
        listing: Mapping[str, TopicDescription] = {}
        began_at = loop_time()
        if needs_listing:
            listing = await self._catalog.all_topics(0.0)
        found = {name: listing[name] for name in names & listing.keys()}
        missing, hidden = set(), set()
        others = await self._catalog.find_now(names - found.keys())
        self._backend.looks.looked(loop_time() - began_at)
        for name, topic in others.items():
            description = described_topic(topic)
            if description is not None:
                found[name] = description
            elif topic.error_code in NOT_FOUND:
                missing.add(name)
            elif topic.error_code is ErrorCode.topic_authorization_failed:
                hidden.add(name)
        self._warn_of(hidden)
        return self._compare(names, found, missing)

    def _compare(self, names: Set[str], found: Mapping[str, TopicDescription], missing: Set[str]) -> Set[str]:
        changed = set()
        for name, topic in found.items():
            known = self._current.get(name)
            if topic.topic_id in self._former_ids or topic == known:
                continue
            if known is not None and known.topic_id == topic.topic_id and topic.partitions < known.partitions:
                continue
            if known is not None and known.topic_id != topic.topic_id:
                # A broker that lags behind may still name the former id.
                remember(self._former_ids, [known.topic_id])
            self._current[name] = topic
            changed.add(name)
        self._looked_at, before = loop_time(), self._missing_since
        self._missing_since = {name: before.get(name, self._looked_at) for name in missing}
        if missing - before.keys():
            # It may be created or deleted just now.
            self._backend.looks.hasten()
        gone = {name for name in missing if self._is_gone(name, self._current.get(name))}
        for name in (self._current.keys() & gone) | (self._current.keys() - names):
            del self._current[name]
        changed |= gone - self._gone
        self._gone = gone
        return changed

    def _is_gone(self, name: str, topic: TopicDescription | None) -> bool:
        """Whether the last look showed that a topic is gone: the given one; without it, whichever had the name."""
        missing_since = self._missing_since.get(name)
        if missing_since is None:
            return False
        is_deleted = topic is not None and topic.topic_id in self._deleted_ids
        return is_deleted or self._looked_at - missing_since >= GONE_AFTER_SECONDS

    def _warn_of(self, hidden: Set[str]) -> None:
        if hidden - self._hidden:
            example = min(hidden)
            log.warning(
                "groups do not learn of changes of %s: %s",
                counted(len(hidden), "topic"),
                not_allowed(Operation.DESCRIBE, example),
            )
        self._hidden = hidden

    # ---- groups --------------------------------------------------------------------------------------------------

    async def _tell(self, group: WatchedGroup) -> None:
        """Tell a group of topics, if something is new to it; what it has not confirmed, it is told again."""
        deleted = [
            topic
            for topic in (*group.told.values(), *group.replaced.values())
            if self._is_gone(topic.name, topic)
            or (topic.name in self._current and self._current[topic.name].topic_id != topic.topic_id)
        ]
        known = self._followed(group) & self._current.keys()
        described = [
            self._current[name]
            for name in sorted(known - self._missing_since.keys())
            if self._is_news(group, self._current[name])
        ]
        # A topic that is missing may be back at the next look, as it was.
        group.has_changed, is_confirmed = not known.isdisjoint(self._missing_since), False
        # Both are sent before the first response, in this order: the group reads them in it.
        asked = []
        if deleted:
            asked.append(self._delete(group, deleted))
        parts = range(0, len(described), MAX_ENTRIES)
        asked += [self._describe(group, described[first : first + MAX_ENTRIES]) for first in parts]
        try:
            is_confirmed = all(await asyncio.gather(*asked))
        finally:
            group.has_changed |= not is_confirmed

    def _followed(self, group: WatchedGroup) -> set[str]:
        """The topics of which a group is told; of one that is hidden from clients only if a member could see it."""
        return (group.names - self._backend.internal_topics.unreadable) | group.told.keys()

    def _is_news(self, group: WatchedGroup, topic: TopicDescription) -> bool:
        told = group.told.get(topic.name)
        return told is None or told.topic_id != topic.topic_id or told.partitions < topic.partitions

    async def _delete(self, group: WatchedGroup, topics: list[TopicDescription]) -> bool:
        ids: dict[str, list[str]] = {}
        for topic in topics:
            ids.setdefault(topic.name, []).append(topic.topic_id)
        body = TopicsDeletedRequest(list(ids), ids)
        response = await self._backend.request(TOPICS_DELETED, 0, group.group_id, body, self._backend.caller)
        if response.error_code != Error.NONE:
            return False
        group.forgot(topics)
        return True

    async def _describe(self, group: WatchedGroup, topics: list[TopicDescription]) -> bool:
        body = TopicsDescribedRequest(topics)
        response = await self._backend.request(TOPICS_DESCRIBED, 0, group.group_id, body, self._backend.caller)
        error = Error(response.error_code)
        if error is not Error.NONE and not error.retriable:
            described = counted(len(topics), "topic")
            log.warning("group %r refuses the descriptions of %s: %s", group.group_id, described, error.name)
        if error is Error.NONE or not error.retriable:
            group.learned(topics)
            return True
        return False


def remember(topics: dict[T, None], more: Iterable[T]) -> None:
    """Add topics, or their ids, to those that are remembered, and forget the oldest of too many."""
    topics.update(dict.fromkeys(more))
    while len(topics) > MAX_FORMER_IDS:
        del topics[next(iter(topics))]
