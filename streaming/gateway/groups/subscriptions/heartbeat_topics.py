"""The descriptions of topics that go with a heartbeat: of those that its member subscribes to and may see."""

import time
from collections.abc import Collection, Iterable, Mapping

from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH
from coordinator_logic.groups.consumer.patterns import InvalidPattern, read_pattern
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, TopicDescription
from streaming.client.errors import CoordinatorNotAvailable
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.watched_groups import WatchedGroup
from streaming.gateway.security.topic_catalog import RENEWAL_SECONDS, described_topic
from streaming.gateway.wire.client_request import Caller

LISTINGS_OF_AGE = 3
"""How many refreshes old the list of all topics may be when a pattern is resolved."""
LISTING_WAIT_SECONDS = 4.0
"""How long a heartbeat with a pattern waits for a list of all topics that is not older than itself."""
RESOLVE_AGAIN_SECONDS = 30.0
"""When a pattern is resolved again although the list of topics is the same: an ACL may have changed."""


class TopicsHidden(Exception):
    """The caller subscribes to a topic that it may not describe."""


class HeartbeatTopics:
    """Finds the topics for heartbeats."""

    def __init__(self, backend: GroupBackend) -> None:
        self._backend = backend
        self._catalog = backend.catalog
        self._listing_seconds = LISTINGS_OF_AGE * backend.policies.timeouts.topic_refresh_seconds

    async def of(self, caller: Caller, heartbeat: ConsumerGroupHeartbeatRequest) -> list[TopicDescription]:
        """The topics to attach to a heartbeat of a member that joins or stays.

        Raises :class:`TopicsHidden`, and :class:`CoordinatorNotAvailable` if Kafka does not describe the topics to
        which a member newly subscribes.
        """
        topics: list[TopicDescription] = []
        if heartbeat.subscribed_topic_names:
            topics += await self._named(caller, heartbeat.subscribed_topic_names)
        group = self._backend.watched.get(heartbeat.group_id)
        if heartbeat.member_epoch == JOIN_EPOCH and group is None:
            topics += await self._of_members_to_convert(heartbeat.group_id)
        if heartbeat.subscribed_topic_regex:
            # The group resolves the pattern now, and again in 10 s at the earliest.
            listing = await self._catalog.all_topics(0.0, wait=LISTING_WAIT_SECONDS)
            topics += await self._matching(caller, heartbeat.subscribed_topic_regex, listing, known=())
        elif heartbeat.subscribed_topic_regex is None and group is not None:
            topics += await self._newly_matching(caller, group, heartbeat.member_id)
        return list({topic.name: topic for topic in topics}.values())

    async def _named(self, caller: Caller, names: list[str]) -> Iterable[TopicDescription]:
        accesses = await self._backend.authorizer.topics(caller, names, RENEWAL_SECONDS)
        if not all(access.may_describe for access in accesses.values()):
            raise TopicsHidden
        existing = sorted((name, access) for name, access in accesses.items() if access.topic_id)
        if len(existing) < len(accesses):
            # Clients subscribe to topics that are created just now, some of them by the subscription.
            self._backend.looks.hasten()
        return [TopicDescription(name, access.topic_id, access.partitions) for name, access in existing]

    async def _of_members_to_convert(self, group_id: str) -> Iterable[TopicDescription]:
        """The topics of members that a group of another type has, which the join converts."""
        backend, names = self._backend, set[str]()
        of_type = backend.type_of(group_id)
        for each in (of_type,) if backend.directory.is_complete else backend.types.values():
            if each is not None and each.topics_to_convert is not None:
                names |= await each.topics_to_convert(backend, group_id)
        names -= backend.internal_topics.unreadable
        found = await self._catalog.find(names, RENEWAL_SECONDS) if names else {}
        return filter(None, map(described_topic, found.values()))

    async def _matching(
        self, caller: Caller, pattern: str, listing: Mapping[str, TopicDescription], known: Collection[str]
    ) -> Iterable[TopicDescription]:
        """The topics of a list that match a pattern, without those that are known."""
        try:
            matches = read_pattern(pattern).matches
        except InvalidPattern:
            # The coordinator refuses it, after the checks that come first.
            return ()
        names = listing.keys() - known - self._backend.internal_topics.all
        matching = await self._backend.lists.only(caller, names, matches)
        describable = await self._backend.authorizer.describable_topics(caller, matching)
        return [listing[name] for name in sorted(describable)]

    async def _newly_matching(self, caller: Caller, group: WatchedGroup, member_id: str) -> Iterable[TopicDescription]:
        """The topics that match a member's pattern and that its group has not been told of.

        A heartbeat does not fail because Kafka does not describe them: the next one brings them.
        """
        pattern = group.pattern_of(member_id)
        if not pattern:
            return ()
        try:
            listing = await self._catalog.all_topics(self._listing_seconds)
            if group.is_resolved(member_id, listing, time.monotonic() - RESOLVE_AGAIN_SECONDS):
                return ()
            topics = list(await self._matching(caller, pattern, listing, known=group.told.keys()))
        except CoordinatorNotAvailable:
            return ()
        if not topics:
            group.resolved(member_id, listing, time.monotonic())
        return topics
