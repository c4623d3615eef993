"""What the cluster's topics look like: their ids and partition counts, by name, by id, or all of them.

A commit for a partition that does not exist is answered UNKNOWN_TOPIC_OR_PARTITION, and a group that assigns
partitions itself (KIP-848) assigns those that are described to it.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from kio.schema.errors import ErrorCode

from coordinator_logic.messages import TopicDescription
from streaming.client.errors import CoordinatorNotAvailable
from streaming.contract.topics import LEGAL_TOPIC_NAME
from streaming.gateway.wire.brokers import ClusterUnreachable

REQUEST_TIMEOUT_SECONDS = 4.0
LISTING_TIMEOUT_SECONDS = 15.0
EXISTING_TTL_SECONDS = 30.0
"""How long the description of an existing topic is cached."""
MISSING_TTL_SECONDS = 0.5
"""How long it is cached that a topic does not exist: it may be created at any time."""
MAX_CACHED_TOPICS = 100_000
NOT_FOUND = frozenset({ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception})

T = TypeVar("T")


class FoundTopic(NamedTuple):
    """The brokers' metadata of a topic.

    ``name`` is empty for an unknown id. ``topic_id``, in Kafka's text form, is empty if the topic does not exist, or if
    the brokers give topics no ids, as before Kafka 2.8.
    """

    name: str
    topic_id: str
    partitions: int
    error_code: ErrorCode = ErrorCode.none


class ClusterTopics(Protocol):
    """Requests topics from the cluster as the gateway. Each method raises :class:`ClusterUnreachable`.

    It is not librdkafka's admin client: each of its descriptions leaks memory, with 1,000 topics 300 MB a day.
    """

    async def topics(self, names: Sequence[str], /) -> Iterable[FoundTopic]:
        """The topics with these names; one that does not exist has an error."""

    async def topics_by_id(self, topic_ids: Sequence[str], /) -> Iterable[FoundTopic]:
        """The topics with these ids; one that does not exist has an error."""

    async def all_topics(self) -> Iterable[FoundTopic]:
        """All topics that the gateway's principal may describe."""


class _Answer(NamedTuple):
    """What one request of the cluster found out: the topics, and why others are unknown, by topic."""

    topics: Mapping[str, FoundTopic]
    failures: Mapping[str, str]


class TopicCatalog:
    """The topics of the cluster, cached for a short time. For one event loop.

    Every method raises :class:`CoordinatorNotAvailable` if the cluster does not answer.

    cluster: requests topics from the cluster.
    request_timeout: seconds that the cluster has to answer.
    """

    def __init__(self, cluster: ClusterTopics, request_timeout: float = REQUEST_TIMEOUT_SECONDS) -> None:
        self._cluster = cluster
        self._request_timeout = request_timeout
        self._topics: OrderedDict[str, tuple[float, FoundTopic]] = OrderedDict()
        self._waiting: set[str] = set()
        self._asking: asyncio.Task[_Answer] | None = None
        self._listing: Mapping[str, TopicDescription] = {}
        self._listed_at: float | None = None
        self._list_lock = asyncio.Lock()

    async def find(self, topics: Iterable[str]) -> Mapping[str, FoundTopic]:
        """Return each topic; one that does not exist has no partitions."""
        now = time.monotonic()
        found: dict[str, FoundTopic] = {}
        uncached = []
        for name in dict.fromkeys(topics):
            until, topic = self._topics.get(name, (0.0, _missing(name)))
            if now < until or not LEGAL_TOPIC_NAME.fullmatch(name):
                found[name] = topic
            else:
                uncached.append(name)
        if uncached:
            found.update(await self._request(uncached))
        return found

    async def find_now(self, topics: Iterable[str]) -> Mapping[str, FoundTopic]:
        """Request topics from the cluster, whatever is cached. Each may have any error."""
        names = [name for name in dict.fromkeys(topics) if LEGAL_TOPIC_NAME.fullmatch(name)]
        if not names:
            return {}
        answer = await _within(LISTING_TIMEOUT_SECONDS, self._cluster.topics(names), _whether_exists(names[0]))
        found = {topic.name: topic for topic in answer}
        self._cache({name: topic for name, topic in found.items() if _is_known(topic)})
        return found

    async def names_of(self, topic_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of topics by their ids; an unknown id is left out."""
        asked = self._cluster.topics_by_id(topic_ids)
        found = await _within(self._request_timeout, asked, "cannot find out the names of topics by their ids")
        return {topic.topic_id: topic.name for topic in found if topic.name and topic.topic_id}

    async def all_topics(self, max_age: float) -> Mapping[str, TopicDescription]:
        """Return all topics that the gateway's principal may describe, as of ``max_age`` seconds ago or later.

        The same object is returned until they are requested again.
        """
        async with self._list_lock:
            now = time.monotonic()
            if self._listed_at is None or now - self._listed_at >= max_age:
                found = await _within(LISTING_TIMEOUT_SECONDS, self._cluster.all_topics(), "cannot list the topics")
                described = (described_topic(topic) for topic in found)
                self._listing = {topic.name: topic for topic in described if topic is not None}
                self._listed_at = now
            return self._listing

    async def _request(self, topics: list[str]) -> dict[str, FoundTopic]:
        """Request topics together with those of all callers that wait; one request is open at a time."""
        found: dict[str, FoundTopic] = {}
        try:
            async with asyncio.timeout(self._request_timeout):
                while unknown := [topic for topic in topics if topic not in found]:
                    self._waiting.update(unknown)
                    if self._asking is None or self._asking.done():
                        self._asking = asyncio.get_running_loop().create_task(self._ask())
                    answer = await asyncio.shield(self._asking)
                    for topic in unknown:
                        if topic in answer.failures:
                            raise CoordinatorNotAvailable(f"{_whether_exists(topic)}: {answer.failures[topic]}")
                        if topic in answer.topics:
                            found[topic] = answer.topics[topic]
        except TimeoutError as failure:
            reason = f"{_whether_exists(topics[0])}: no answer within {self._request_timeout:g} s"
            raise CoordinatorNotAvailable(reason) from failure
        return found

    async def _ask(self) -> _Answer:
        """Request the topics that wait now, from all callers."""
        asked, self._waiting = self._waiting, set()
        answer = await self._answer(asked)
        self._cache(answer.topics)
        # Whoever asked for one of them in the meantime has waited for this answer.
        self._waiting -= asked
        return answer

    async def _answer(self, topics: set[str]) -> _Answer:
        try:
            async with asyncio.timeout(self._request_timeout):
                found = list(await self._cluster.topics(list(topics)))
        except (ClusterUnreachable, TimeoutError) as failure:
            return _Answer({}, dict.fromkeys(topics, repr(failure)))
        known = {topic.name: topic for topic in found if _is_known(topic)}
        errors: dict[str, str] = {topic.name: topic.error_code.name for topic in found}
        return _Answer(known, {topic: errors.get(topic, "no answer") for topic in topics - known.keys()})

    def _cache(self, topics: Mapping[str, FoundTopic]) -> None:
        now = time.monotonic()
        for name, topic in topics.items():
            self._topics[name] = (now + (EXISTING_TTL_SECONDS if topic.partitions else MISSING_TTL_SECONDS), topic)
            self._topics.move_to_end(name)
        while len(self._topics) > MAX_CACHED_TOPICS:
            self._topics.popitem(last=False)


def described_topic(topic: FoundTopic) -> TopicDescription | None:
    """The description of a topic for a group; None if the topic does not exist."""
    if not topic.topic_id or topic.error_code is not ErrorCode.none:
        return None
    return TopicDescription(topic.name, topic.topic_id, topic.partitions)


def _is_known(topic: FoundTopic) -> bool:
    """Whether the brokers say that the topic exists, or that it does not."""
    return topic.error_code is ErrorCode.none or topic.error_code in NOT_FOUND


def _missing(name: str) -> FoundTopic:
    return FoundTopic(name, "", 0, ErrorCode.unknown_topic_or_partition)


def _whether_exists(topic: str) -> str:
    return f"cannot find out whether topic {topic!r} exists"


async def _within(seconds: float, answer: Awaitable[T], problem: str) -> T:
    """Await the cluster's answer. Raises :class:`CoordinatorNotAvailable`, with the problem, if it does not answer."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except (ClusterUnreachable, TimeoutError) as failure:
        raise CoordinatorNotAvailable(f"{problem}: {failure!r}") from failure
