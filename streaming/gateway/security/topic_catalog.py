"""What the cluster's topics look like: their ids and partition counts, by name, by id, or all of them.

A commit for a partition that does not exist is answered UNKNOWN_TOPIC_OR_PARTITION, and a group that assigns
partitions itself (KIP-848) assigns those that are described to it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from kio.schema.errors import ErrorCode

from coordinator_logic.messages import TopicDescription
from streaming.client.errors import CoordinatorNotAvailable
from streaming.contract.topics import LEGAL_TOPIC_NAME
from streaming.gateway.security.shared_lookups import NOT_FOUND, FoundTopic, SharedLookups
from streaming.gateway.wire.brokers import ClusterUnreachable
from streaming.gateway.wire.loop_share import loop_time

__all__ = ["NOT_FOUND", "RENEWAL_SECONDS", "ClusterTopics", "FoundTopic", "TopicCatalog", "described_topic"]

REQUEST_TIMEOUT_SECONDS = 4.0
LISTING_TIMEOUT_SECONDS = 15.0
EXISTING_TTL_SECONDS = 5.0
"""How long the description of an existing topic is cached."""
MISSING_TTL_SECONDS = 0.5
"""How long it is cached that a topic does not exist: it may be created at any time."""
LAG_SECONDS = 2.0
"""How long a broker may take to hear of a change: what was asked meanwhile is cached no longer than that a topic does
not exist."""
RENEWAL_SECONDS = 0.1
"""How old a description is at least that is renewed because a request does not fit it: so no client can make the
gateway ask the brokers all the time."""
LISTING_SHARE = 0.1
"""The share of the time in which the gateway lists all topics at most, since that may take long."""
MAX_CACHED_TOPICS = 100_000

T = TypeVar("T")


class ClusterTopics(Protocol):
    """Requests topics from the cluster as the gateway. Each method raises :class:`ClusterUnreachable`.

    It is not librdkafka's admin client: each of its descriptions leaks memory, with 1,000 topics 300 MB a day.
    """

    async def topics(self, names: Sequence[str], /) -> Iterable[FoundTopic]:
        """The topics with these names; one that does not exist has an error."""

    async def topics_by_id(self, topic_ids: Sequence[str], /) -> Iterable[FoundTopic]:
        """The topics with these ids; one that does not exist has an error, and no name."""

    async def all_topics(self) -> Iterable[FoundTopic]:
        """All topics that the gateway's principal may describe."""


class TopicCatalog:
    """The topics of the cluster, cached for a short time. For one event loop.

    Every method that asks raises :class:`CoordinatorNotAvailable` if the cluster does not answer.

    cluster: requests topics from the cluster.
    request_timeout: seconds that the cluster has to answer.
    on_change: called when topics have changed, or may have.
    """

    def __init__(
        self,
        cluster: ClusterTopics,
        request_timeout: float = REQUEST_TIMEOUT_SECONDS,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._cluster = cluster
        self._on_change = on_change
        self._by_name = SharedLookups(
            cluster.topics, lambda topic: topic.name, self._cache, _whether_exists, request_timeout
        )
        self._by_id = SharedLookups(
            cluster.topics_by_id, lambda topic: topic.topic_id, self._cache_ids, _which_name, request_timeout
        )
        self._topics: OrderedDict[str, tuple[float, FoundTopic]] = OrderedDict()
        self._missing_ids: OrderedDict[str, float] = OrderedDict()
        self._changed_at = self._expired_at = float("-inf")
        self._listing: Mapping[str, TopicDescription] = {}
        self._listed_at: float | None = None
        self._listing_took = 0.0
        self._list_lock = asyncio.Lock()

    def changed(self) -> None:
        """Topics may have changed: what is cached is out of date."""
        self._changed_at = loop_time()
        self._on_change()

    def is_current(self, asked_at: float, max_age: float) -> bool:
        """Whether an answer that was requested at a time of the loop may still be used, ``max_age`` seconds later."""
        now = loop_time()
        if self._changed_at > self._expired_at and now - self._expired_at >= RENEWAL_SECONDS:
            self._expired_at = now
        if asked_at < self._changed_at + LAG_SECONDS:
            max_age = min(max_age, MISSING_TTL_SECONDS)
        return asked_at >= self._expired_at and now - asked_at < max_age

    async def find(self, topics: Iterable[str], max_age: float | None = None) -> Mapping[str, FoundTopic]:
        """Return each topic, as of ``max_age`` seconds ago or later; one that does not exist has no partitions."""
        found: dict[str, FoundTopic] = {}
        unknown = []
        for name in dict.fromkeys(topics):
            asked_at, topic = self._topics.get(name, (float("-inf"), _missing(name)))
            ttl = EXISTING_TTL_SECONDS if topic.partitions else MISSING_TTL_SECONDS
            limit = ttl if max_age is None else min(ttl, max_age)
            if self.is_current(asked_at, limit) or not LEGAL_TOPIC_NAME.fullmatch(name):
                found[name] = topic
            else:
                unknown.append(name)
        if unknown:
            found |= await self._by_name.request(unknown)
        return found

    async def find_now(self, topics: Iterable[str]) -> Mapping[str, FoundTopic]:
        """Request topics from the cluster, whatever is cached. Each may have any error."""
        names = [name for name in dict.fromkeys(topics) if LEGAL_TOPIC_NAME.fullmatch(name)]
        if not names:
            return {}
        asked_at = loop_time()
        answer = await _within(LISTING_TIMEOUT_SECONDS, self._cluster.topics(names), _whether_exists(names[0]))
        found = {topic.name: topic for topic in answer}
        self._cache({name: topic for name, topic in found.items() if topic.is_known}, asked_at)
        return found

    async def names_of(self, topic_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of topics by their ids; an unknown id is left out."""
        never = float("-inf")
        asked = [
            topic_id
            for topic_id in topic_ids
            if not self.is_current(self._missing_ids.get(topic_id, never), RENEWAL_SECONDS)
        ]
        found = await self._by_id.request(asked) if asked else {}
        return {topic_id: topic.name for topic_id, topic in found.items() if topic.name}

    async def all_topics(self, max_age: float, wait: float = 0.0) -> Mapping[str, TopicDescription]:
        """Return all topics that the gateway's principal may describe, as of ``max_age`` seconds ago or later.

        They may be older if listing them takes long; ``wait`` is how many seconds the caller waits before it accepts
        that. The same object is returned until they are requested again.
        """
        called_at = loop_time()
        while True:
            async with self._list_lock:
                if self._is_listed_since(called_at, max_age):
                    return self._listing
                pause = self._until_next_listing()
                if pause <= 0:
                    await self._list()
                    return self._listing
                if loop_time() + pause > called_at + wait:
                    return self._listing
            await asyncio.sleep(pause)

    async def _list(self) -> None:
        now = loop_time()
        found = await _within(LISTING_TIMEOUT_SECONDS, self._cluster.all_topics(), "cannot list the topics")
        described = (described_topic(topic) for topic in found)
        self._listing = {topic.name: topic for topic in described if topic is not None}
        self._listed_at, self._listing_took = now, loop_time() - now

    def _is_listed_since(self, called_at: float, max_age: float) -> bool:
        """Whether all topics were listed after a call, or so recently before it that the list may still be used."""
        listed_at = self._listed_at
        return listed_at is not None and (listed_at > called_at or self.is_current(listed_at, max_age))

    def _until_next_listing(self) -> float:
        """The seconds until all topics may be listed again."""
        if self._listed_at is None:
            return 0.0
        return self._listed_at + min(self._listing_took / LISTING_SHARE, LISTING_TIMEOUT_SECONDS) - loop_time()

    def _cache(self, topics: Mapping[str, FoundTopic], asked_at: float) -> None:
        has_changed = False
        for name, topic in topics.items():
            before = self._topics.get(name)
            if before is not None and before[0] > asked_at:
                continue
            has_changed |= before is not None and before[1] != topic
            self._topics[name] = (asked_at, topic)
            self._topics.move_to_end(name)
        while len(self._topics) > MAX_CACHED_TOPICS:
            self._topics.popitem(last=False)
        if has_changed:
            self._on_change()

    def _cache_ids(self, topics: Mapping[str, FoundTopic], asked_at: float) -> None:
        for topic_id, topic in topics.items():
            if not topic.name:
                self._missing_ids[topic_id] = asked_at
                self._missing_ids.move_to_end(topic_id)
        while len(self._missing_ids) > MAX_CACHED_TOPICS:
            self._missing_ids.popitem(last=False)


def described_topic(topic: FoundTopic) -> TopicDescription | None:
    """The description of a topic for a group; None if the topic does not exist."""
    if not topic.topic_id or topic.error_code is not ErrorCode.none:
        return None
    return TopicDescription(topic.name, topic.topic_id, topic.partitions)


def _missing(name: str) -> FoundTopic:
    return FoundTopic(name, "", 0, ErrorCode.unknown_topic_or_partition)


def _whether_exists(topic: str) -> str:
    return f"cannot find out whether topic {topic!r} exists"


def _which_name(_topic_id: str) -> str:
    return "cannot find out the names of topics by their ids"


async def _within(seconds: float, answer: Awaitable[T], problem: str) -> T:
    """Await the cluster's answer. Raises :class:`CoordinatorNotAvailable`, with the problem, if it does not answer."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except (ClusterUnreachable, TimeoutError) as failure:
        raise CoordinatorNotAvailable(f"{problem}: {failure!r}") from failure
