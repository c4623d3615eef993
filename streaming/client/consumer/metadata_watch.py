"""Watches the cluster's topics for one consumer.

A consumer with a pattern watches the names of all topics; the leader of a group watches the metadata of all topics that
the group subscribes to. A follower with a list of topics queries nothing.

Source: Metadata and ConsumerCoordinator of Kafka's Java client.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from coordinator_logic.assignors import TopicMetadata
from streaming.client.consumer.cluster_topics import ClusterTopics
from streaming.client.consumer.topic_pattern import Pattern
from streaming.client.consumer.topic_queries import TopicQueries
from streaming.client.consumer.types import ConsumerConfig
from streaming.client.errors import CoordinatorError

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class GroupTopics:
    """The topics that a leader's group subscribes to, and the metadata that the leader assigns with.

    Each generation has an instance of its own; instances compare by identity.
    """

    subscribed: frozenset[str]
    with_racks: bool
    metadata: Mapping[str, TopicMetadata]


@dataclass(frozen=True)
class TopicUpdate:
    """The brokers' answer to a query.

    matched: the topics that match the pattern; None if the query had no pattern.
    metadata: the metadata of the group's topics; None if the query had no group.
    """

    matched: frozenset[str] | None
    metadata: Mapping[str, TopicMetadata] | None


@dataclass(frozen=True)
class _Query:
    """A query for the topics that match a pattern, for the metadata of a group's topics, or for both."""

    pattern: Pattern | None
    group: GroupTopics | None

    @property
    def is_needed(self) -> bool:
        return self.pattern is not None or self.group is not None

    def run(self, cluster: ClusterTopics, timeout: float) -> TopicUpdate:
        matched = None if self.pattern is None else self.pattern.filter(cluster.names(timeout))
        group = self.group
        metadata = None if group is None else cluster.describe(group.subscribed, timeout, with_racks=group.with_racks)
        return TopicUpdate(matched, metadata)

    def has_missing_topics(self, update: TopicUpdate) -> bool:
        group, metadata = self.group, update.metadata
        return group is not None and metadata is not None and not group.subscribed <= metadata.keys()


class MetadataWatch(TopicQueries[TopicUpdate]):
    """Queries the brokers in the background. Not thread-safe.

    ``group`` has the topics and the metadata of the group that this member leads; None if it is a follower.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.group: GroupTopics | None = None
        self._pattern: Pattern | None = None
        self._query = _Query(None, None)

    def close(self) -> None:
        """Stop querying and disconnect; an outstanding answer is dropped."""
        self._pattern = self.group = self._cluster = self._answer = None

    def watch_pattern(self, pattern: Pattern | None) -> None:
        """Watch the topics that match a pattern from now on, or none; the first query is due at once."""
        self._pattern = pattern
        self._answer = None
        self._due = 0.0

    def watch_group(self, subscribed: Iterable[str], *, with_racks: bool) -> None:
        """Query the topics of the group that this member leads, wait for the answer, and watch them from now on.

        Raises:
            RequestTimedOut: no broker answers within ``default_api_timeout_ms``.
        """
        topics = frozenset(subscribed)
        timeout = self._config.default_api_timeout_ms / 1000
        metadata = self._connected().describe(topics, timeout, with_racks=with_racks)
        self.group = GroupTopics(topics, with_racks, metadata)
        self._queried_at, self._refresh_requested = time.monotonic(), False
        expires = self._next_due(is_missing=not topics <= metadata.keys())
        self._due = expires if self._pattern is None else min(self._due, expires)

    def stop_watching_group(self) -> None:
        """Stop watching the group's topics: another member may lead the group from now on."""
        self.group = None

    def poll(self, timeout: float = 0.0) -> TopicUpdate | None:
        """Send a query if one is due, and return the answer once; waits for it up to ``timeout`` seconds."""
        query = _Query(self._pattern, self.group)
        now = time.monotonic()
        if self._answer is None and query.is_needed and (now >= self._due or self._must_refresh(now)):
            self._query = query
            self._start_query(query.run)
        answer = self._take_answer(timeout)
        # The answer to a query of an earlier subscription or generation may be older than the metadata in use.
        return self._result(answer) if answer is not None and self._query == query else None

    def _result(self, answer: Future[TopicUpdate]) -> TopicUpdate | None:
        try:
            update = answer.result()
        except CoordinatorError as failure:
            log.warning("the topics could not be queried, retrying: %s", failure)
            self._due = time.monotonic() + self._retry_backoff
            return None
        self._due = self._next_due(is_missing=self._query.has_missing_topics(update))
        return update


def describe_change(before: Mapping[str, TopicMetadata], now: Mapping[str, TopicMetadata]) -> str | None:
    """The first change of these topics, by name, as text for people; None if they are the same."""
    for topic in sorted(before.keys() | now.keys()):
        old, new = before.get(topic), now.get(topic)
        if old == new:
            continue
        if old is None:
            return f"topic {topic} was created"
        if new is None:
            return f"topic {topic} was deleted"
        if old.partitions != new.partitions:
            return f"the number of partitions of topic {topic} changed from {old.partitions} to {new.partitions}"
        return f"replicas of topic {topic} moved to other racks"
    return None
