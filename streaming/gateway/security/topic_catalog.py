"""Partition counts of topics: a commit for any other partition is answered with UNKNOWN_TOPIC_OR_PARTITION."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from streaming.client.errors import CoordinatorNotAvailable
from streaming.client.librdkafka import LibrdkafkaConfig, admin_config

__all__ = ["TopicCatalog"]

REQUEST_TIMEOUT_SECONDS = 4.0
EXISTING_TTL_SECONDS = 30.0
"""How long the partition count of an existing topic is cached."""
MISSING_TTL_SECONDS = 0.5
"""How long it is cached that a topic does not exist: it may be created at any time."""
MAX_CACHED_TOPICS = 100_000
NOT_FOUND = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION})


class TopicCatalog:
    """Partition counts by topic, requested from the cluster and cached for a short time.

    config: librdkafka's properties for the admin client.
    request_timeout: seconds that the cluster has to answer.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        client_id: str,
        config: LibrdkafkaConfig | None = None,
        request_timeout: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        self._request_timeout = request_timeout
        self._admin = AdminClient(admin_config(bootstrap_servers, client_id, config or {}))
        self._partitions: OrderedDict[str, tuple[float, int]] = OrderedDict()

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
            else:
                uncached.append(topic)
        if uncached:
            counts.update(await self._request(uncached))
        return counts

    async def _request(self, topics: list[str]) -> dict[str, int]:
        # librdkafka refuses to request an empty name, which no topic can have.
        named = [topic for topic in topics if topic]
        counts = dict.fromkeys(topics, 0)
        futures = self._admin.describe_topics(TopicCollection(named), request_timeout=self._request_timeout)
        for topic, future in futures.items():
            try:
                counts[topic] = len((await asyncio.wrap_future(future)).partitions)
            except KafkaException as failure:
                error: KafkaError = failure.args[0]
                if error.code() not in NOT_FOUND:
                    raise CoordinatorNotAvailable(
                        f"cannot find out whether topic {topic!r} exists: {error.str()}"
                    ) from failure
        self._cache(counts)
        return counts

    def _cache(self, counts: Mapping[str, int]) -> None:
        now = time.monotonic()
        for topic, count in counts.items():
            self._partitions[topic] = (now + (EXISTING_TTL_SECONDS if count else MISSING_TTL_SECONDS), count)
            self._partitions.move_to_end(topic)
        while len(self._partitions) > MAX_CACHED_TOPICS:
            self._partitions.popitem(last=False)
