"""Partition counts of topics: a commit for any other partition is answered with UNKNOWN_TOPIC_OR_PARTITION."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v4.response import MetadataResponseTopic

from streaming.client.errors import CoordinatorNotAvailable
from streaming.contract.topics import LEGAL_TOPIC_NAME
from streaming.gateway.wire.brokers import ClusterUnreachable

__all__ = ["FindTopics", "TopicCatalog"]

FindTopics = Callable[[Sequence[str]], Awaitable[Iterable[MetadataResponseTopic]]]
"""Returns the brokers' metadata of each topic. Raises :class:`ClusterUnreachable`."""

REQUEST_TIMEOUT_SECONDS = 4.0
EXISTING_TTL_SECONDS = 30.0
"""How long the partition count of an existing topic is cached."""
MISSING_TTL_SECONDS = 0.5
"""How long it is cached that a topic does not exist: it may be created at any time."""
MAX_CACHED_TOPICS = 100_000
NOT_FOUND = frozenset({ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception})


class _Answer(NamedTuple):
    """What one request of the cluster found out: partition counts, and why others are unknown, by topic."""

    counts: Mapping[str, int]
    failures: Mapping[str, str]


class TopicCatalog:
    """Partition counts by topic, requested from the cluster and cached for a short time. For one event loop.

    find: requests the topics from the cluster. It is not librdkafka's admin client: each of its descriptions leaks
    memory, with 1,000 topics 300 MB a day.
    request_timeout: seconds that the cluster has to answer.
    """

    def __init__(self, find: FindTopics, request_timeout: float = REQUEST_TIMEOUT_SECONDS) -> None:
        self._find = find
        self._request_timeout = request_timeout
        self._partitions: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._waiting: set[str] = set()
        self._asking: asyncio.Task[_Answer] | None = None

    async def partition_counts(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Return each topic's number of partitions, 0 for one that does not exist.

        Raises :class:`CoordinatorNotAvailable` if the cluster does not answer.
        """
        now = time.monotonic()
        counts: dict[str, int] = {}
        uncached = []
        for topic in dict.fromkeys(topics):
            until, count = self._partitions.get(topic, (0.0, 0))
            if now < until:
                counts[topic] = count
            elif LEGAL_TOPIC_NAME.fullmatch(topic):
                uncached.append(topic)
            else:
                counts[topic] = 0
        if uncached:
            counts.update(await self._request(uncached))
        return counts

    async def _request(self, topics: list[str]) -> dict[str, int]:
        """Request topics together with those of all callers that wait; one request is open at a time."""
        counts: dict[str, int] = {}
        try:
            async with asyncio.timeout(self._request_timeout):
                while unknown := [topic for topic in topics if topic not in counts]:
                    self._waiting.update(unknown)
                    if self._asking is None or self._asking.done():
                        self._asking = asyncio.get_running_loop().create_task(self._ask())
                    answer = await asyncio.shield(self._asking)
                    for topic in unknown:
                        if topic in answer.failures:
                            raise _not_available(topic, answer.failures[topic])
                        if topic in answer.counts:
                            counts[topic] = answer.counts[topic]
        except TimeoutError as failure:
            raise _not_available(topics[0], f"no answer within {self._request_timeout:g} s") from failure
        return counts

    async def _ask(self) -> _Answer:
        """Request the topics that wait now, from all callers."""
        asked, self._waiting = self._waiting, set()
        answer = await self._answer(asked)
        self._cache(answer.counts)
        # Whoever asked for one of them in the meantime has waited for this answer.
        self._waiting -= asked
        return answer

    async def _answer(self, topics: set[str]) -> _Answer:
        try:
            async with asyncio.timeout(self._request_timeout):
                found = await self._find(list(topics))
        except (ClusterUnreachable, TimeoutError) as failure:
            return _Answer({}, dict.fromkeys(topics, repr(failure)))
        counts: dict[str, int] = {
            topic.name: len(topic.partitions)
            for topic in found
            if topic.error_code is ErrorCode.none or topic.error_code in NOT_FOUND
        }
        errors: dict[str, str] = {topic.name: topic.error_code.name for topic in found}
        return _Answer(counts, {topic: errors.get(topic, "no answer") for topic in topics - counts.keys()})

    def _cache(self, counts: Mapping[str, int]) -> None:
        now = time.monotonic()
        for topic, count in counts.items():
            self._partitions[topic] = (now + (EXISTING_TTL_SECONDS if count else MISSING_TTL_SECONDS), count)
            self._partitions.move_to_end(topic)
        while len(self._partitions) > MAX_CACHED_TOPICS:
            self._partitions.popitem(last=False)


def _not_available(topic: str, reason: str) -> CoordinatorNotAvailable:
    return CoordinatorNotAvailable(f"cannot find out whether topic {topic!r} exists: {reason}")
