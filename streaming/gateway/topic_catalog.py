"""Which topics there are, as far as commits ask: a broker answers UNKNOWN_TOPIC_OR_PARTITION for others."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from streaming.client.errors import CoordinatorNotAvailable
from streaming.client.librdkafka import LibrdkafkaConfig, admin_config

__all__ = ["TopicCatalog"]

ASK_TIMEOUT_SECONDS = 4.0
KNOWN_SECONDS = 30.0
"""How long a topic that was there is taken for being there, without asking again."""
UNKNOWN_SECONDS = 0.5
"""How long one that was not there is taken for missing: it may be created at any time."""
MOST_REMEMBERED = 100_000
MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION})


class TopicCatalog:
    """Numbers of partitions by topic, asked of the cluster and remembered for a while."""

    def __init__(self, bootstrap_servers: str, client_id: str, config: LibrdkafkaConfig | None = None) -> None:
        self._admin = AdminClient(admin_config(bootstrap_servers, client_id, config or {}))
        self._partitions: OrderedDict[str, tuple[float, int]] = OrderedDict()

    async def partition_counts(self, topics: Iterable[str]) -> Mapping[str, int]:
        """How many partitions each topic has; 0 for one that does not exist.

        Raises :class:`CoordinatorNotAvailable` when the cluster does not say.
        """
        now = time.monotonic()
        counts: dict[str, int] = {}
        to_ask = []
        for topic in dict.fromkeys(topics):
            until, count = self._partitions.get(topic, (0.0, 0))
            if now < until:
                counts[topic] = count
            else:
                to_ask.append(topic)
        if to_ask:
            counts.update(await self._ask(to_ask))
        return counts

    async def _ask(self, topics: list[str]) -> dict[str, int]:
        # An empty name is no topic, and no question that a client of Kafka's can ask.
        named = [topic for topic in topics if topic]
        counts = dict.fromkeys(topics, 0)
        futures = self._admin.describe_topics(TopicCollection(named), request_timeout=ASK_TIMEOUT_SECONDS)
        for topic, future in futures.items():
            try:
                counts[topic] = len((await asyncio.wrap_future(future)).partitions)
            except KafkaException as failure:
                error: KafkaError = failure.args[0]
                if error.code() not in MISSING:
                    raise CoordinatorNotAvailable(f"whether topic {topic!r} exists: {error.str()}") from failure
        self._remember(counts)
        return counts

    def _remember(self, counts: Mapping[str, int]) -> None:
        now = time.monotonic()
        for topic, count in counts.items():
            self._partitions[topic] = (now + (KNOWN_SECONDS if count else UNKNOWN_SECONDS), count)
            self._partitions.move_to_end(topic)
        while len(self._partitions) > MOST_REMEMBERED:
            self._partitions.popitem(last=False)
