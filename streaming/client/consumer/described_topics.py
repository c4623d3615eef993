"""Describes the topics of a consumer with the consumer group protocol: the coordinator sees no cluster."""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial

from coordinator_logic.messages import TopicDescription
from streaming.client.consumer.cluster_topics import ClusterTopics
from streaming.client.consumer.topic_pattern import CoordinatorPattern, Pattern
from streaming.client.consumer.topic_queries import TopicQueries
from streaming.client.consumer.types import ConsumerConfig
from streaming.client.errors import CoordinatorError
from streaming.client.membership.consumer_groups.types import TopicSubscription

log = logging.getLogger(__name__)


class DescribedTopics(TopicQueries[TopicSubscription]):
    """Keeps ``subscription``: what the consumer subscribes to, with the topics as the brokers described them last.

    It is None until the first answer, and stays the old one until the topics of a new one are described.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.subscription: TopicSubscription | None = None
        self._names: frozenset[str] = frozenset()
        self._pattern: Pattern | None = None
        self._ids_due = 0.0

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

    def poll(self, timeout: float = 0.0) -> None:
        """Send a query if one is due, and apply its answer; wait for the answer up to ``timeout`` seconds."""
        if not self._names and self._pattern is None:
            return
        now = time.monotonic()
        requested = self._must_refresh(now)
        if self._answer is None and (now >= self._due or requested):
            self._send(now, with_ids=requested or now >= self._ids_due)
        answer = self._take_answer(timeout)
        if answer is not None:
            self._apply_answer(answer)

    def _send(self, now: float, *, with_ids: bool) -> None:
        if with_ids:
            self._ids_due = now + self._max_age
        known = {} if with_ids or self.subscription is None else self.subscription.topics
        self._start_query(partial(_query, self._names, self._pattern, known))

    def _apply_answer(self, answer: Future[TopicSubscription]) -> None:
        try:
            subscription = answer.result()
        except CoordinatorError as failure:
            log.warning("the topics could not be described, retrying: %s", failure)
            self._due, self._ids_due = time.monotonic() + self._retry_backoff, 0.0
            return
        self._due = self._next_due(is_missing=not subscription.names <= subscription.topics.keys())
        self.subscription = subscription


def _query(
    names: frozenset[str],
    pattern: Pattern | None,
    known: Mapping[str, TopicDescription],
    cluster: ClusterTopics,
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
