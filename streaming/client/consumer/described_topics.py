"""Describes the topics that a consumer with the consumer group protocol subscribes to: the coordinator sees no cluster.

The brokers are queried every ``metadata_max_age_ms``, earlier on request and while a subscribed topic does not exist,
and on a thread of their own, so that no poll waits for a broker.
"""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures

from coordinator_logic.messages import TopicDescription
from streaming.client.consumer.background import in_background
from streaming.client.consumer.cluster_topics import ClusterTopics
from streaming.client.consumer.topic_pattern import CoordinatorPattern, Pattern
from streaming.client.consumer.types import ConsumerConfig
from streaming.client.errors import CoordinatorError
from streaming.client.membership.consumer_groups.types import TopicSubscription

log = logging.getLogger(__name__)


class DescribedTopics:
    """Keeps ``subscription``: what the consumer subscribes to, with the topics as the brokers described them last.

    It is None until the first answer, and stays the old one until the topics of a new one are described. Not
    thread-safe.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self.subscription: TopicSubscription | None = None
        self._config = config
        self._max_age = config.metadata_max_age_ms / 1000
        # The shortest time between two queries, and their interval while a subscribed topic does not exist.
        self._retry_backoff = config.retry_backoff_max_ms / 1000
        self._names: frozenset[str] = frozenset()
        self._pattern: Pattern | None = None
        self._cluster: ClusterTopics | None = None
        self._answer: Future[TopicSubscription] | None = None
        self._queried_at = self._due = self._ids_due = 0.0
        self._refresh_requested = False

    def close(self) -> None:
        """Stop querying and disconnect; an outstanding answer is dropped."""
        self.watch(frozenset(), None)
        self._cluster = None

    def watch(self, names: frozenset[str], pattern: Pattern | None) -> None:
        """Describe these topics from now on, or those that match a pattern; the first query is due at once."""
        self._names, self._pattern = names, pattern
        self._answer = None
        self._due = self._ids_due = 0.0
        if not names and pattern is None:
            self.subscription = None

    def request_refresh(self) -> None:
        """Query again as soon as ``retry_backoff_max_ms`` allow, because the last answer may be out of date."""
        self._refresh_requested = True

    def poll(self, timeout: float = 0.0) -> None:
        """Send a query if one is due, and apply its answer; wait for the answer up to ``timeout`` seconds."""
        if not self._names and self._pattern is None:
            return
        now = time.monotonic()
        requested = self._refresh_requested and now >= self._queried_at + self._retry_backoff
        if self._answer is None and (now >= self._due or requested):
            self._send(now, with_ids=requested or now >= self._ids_due)
        if self._answer is not None and wait_for_futures([self._answer], timeout).done:
            answer, self._answer = self._answer, None
            self._apply_answer(answer)

    def _send(self, now: float, *, with_ids: bool) -> None:
        self._queried_at, self._refresh_requested = now, False
        if with_ids:
            self._ids_due = now + self._max_age
        if self._cluster is None:
            self._cluster = ClusterTopics(self._config)
        known = {} if with_ids or self.subscription is None else self.subscription.topics
        cluster, names, pattern = self._cluster, self._names, self._pattern
        timeout = self._config.request_timeout_ms / 1000
        self._answer = in_background(
            f"{self._config.group_id}-topics", lambda: _query(cluster, names, pattern, known, timeout)
        )

    def _apply_answer(self, answer: Future[TopicSubscription]) -> None:
        now = time.monotonic()
        try:
            subscription = answer.result()
        except CoordinatorError as failure:
            log.warning("the topics could not be described, retrying: %s", failure)
            self._due, self._ids_due = now + self._retry_backoff, 0.0
            return
        is_missing = not subscription.names <= subscription.topics.keys()
        self._due = now + (min(self._max_age, self._retry_backoff) if is_missing else self._max_age)
        self.subscription = subscription


def _query(
    cluster: ClusterTopics,
    names: frozenset[str],
    pattern: Pattern | None,
    known: Mapping[str, TopicDescription],
    timeout: float,
) -> TopicSubscription:
    """Describe the topics; ids that are known are kept for topics that look the same."""
    wanted = names if pattern is None else pattern.filter(cluster.names(timeout))
    found = cluster.describe(wanted, timeout, with_racks=False)
    topics = {
        name: known[name]
        for name, metadata in found.items()
        if name in known and known[name].partitions == metadata.partitions
    }
    for name, topic_id in cluster.topic_ids(found.keys() - topics.keys(), timeout).items():
        topics[name] = TopicDescription(name, topic_id, found[name].partitions)
    if isinstance(pattern, CoordinatorPattern):
        return TopicSubscription(pattern=pattern.expression, topics=topics)
    return TopicSubscription(wanted, topics=topics)
