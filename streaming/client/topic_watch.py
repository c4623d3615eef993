"""Watches the cluster's topics for one consumer: what matches its pattern, and, when it leads, what the group wants.

The brokers are asked every ``metadata_max_age_ms``, and sooner when there is a reason to. That happens on a thread of
its own, so that no poll waits for a broker that is away. Only what somebody needs is asked for: a member that follows,
and that names its topics, asks nothing.

Source: Metadata and ConsumerCoordinator of Kafka's Java client.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass
from typing import TypeVar

from coordinator_logic.consumer_protocol.assignors import TopicMetadata
from streaming.client.cluster_topics import ClusterTopics
from streaming.client.consumer_types import ConsumerConfig
from streaming.client.errors import CoordinatorError
from streaming.client.topic_pattern import TopicPattern

log = logging.getLogger(__name__)

SHORTEST_AGE_SECONDS = 1.0
"""The time between two questions, whatever the reason for the second: ``retry.backoff.max.ms`` of Kafka's client.

It is also how often a topic that is wanted and missing is looked for.
"""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class GroupTopics:
    """What a leader assigns with: what its members want, and what there is of it. Each generation has its own."""

    wanted: frozenset[str]
    with_racks: bool
    found: Mapping[str, TopicMetadata]


@dataclass(frozen=True)
class Sighting:
    """An answer of the brokers. None: there was no such question."""

    matched: frozenset[str] | None
    found: Mapping[str, TopicMetadata] | None


@dataclass(frozen=True)
class _Question:
    """What is asked, and of what kind of news the answer may be."""

    pattern: TopicPattern | None
    group: GroupTopics | None

    @property
    def asks_something(self) -> bool:
        return self.pattern is not None or self.group is not None

    def ask(self, cluster: ClusterTopics, timeout: float) -> Sighting:
        matched = None if self.pattern is None else self.pattern.among(cluster.names(timeout))
        group = self.group
        found = None if group is None else cluster.describe(group.wanted, timeout, with_racks=group.with_racks)
        return Sighting(matched, found)

    def lacks_something(self, seen: Sighting) -> bool:
        return self.group is not None and seen.found is not None and not self.group.wanted <= seen.found.keys()


class TopicWatch:
    """Belongs to the consumer's thread. ``group`` is what this member assigned with last, None unless it leads."""

    def __init__(self, config: ConsumerConfig) -> None:
        self.group: GroupTopics | None = None
        self._config = config
        self._max_age = config.metadata_max_age_ms / 1000
        self._pattern: TopicPattern | None = None
        # Most consumers neither lead their group nor have a pattern: they never need it.
        self._cluster: ClusterTopics | None = None
        self._answer: Future[Sighting] | None = None
        self._asked = _Question(None, None)
        self._asked_at = 0.0
        self._due = 0.0
        self._soon = False

    def close(self) -> None:
        """Ask nothing more, and disconnect; an answer that is still to come is dropped."""
        self._pattern = self.group = self._cluster = self._answer = None

    def match(self, pattern: TopicPattern | None) -> None:
        """From now on look for topics that match ``pattern``, at once for the first time."""
        self._pattern = pattern
        self._answer = None
        self._due = 0.0

    def lead(self, wanted: Iterable[str], *, with_racks: bool) -> None:
        """Become the leader of members that want these topics; waits until the brokers have told what there is of them.

        Raises:
            RequestTimedOut: no broker answers.
        """
        topics = frozenset(wanted)
        timeout = self._config.default_api_timeout_ms / 1000
        found = self._connected().describe(topics, timeout, with_racks=with_racks)
        self.group = GroupTopics(topics, with_racks, found)
        self._asked_at, self._soon = time.monotonic(), False
        expires = self._expiry(missing=not topics <= found.keys())
        self._due = expires if self._pattern is None else min(self._due, expires)

    def follow(self) -> None:
        """Lead no longer: what the group wants is another member's business."""
        self.group = None

    def ask_soon(self) -> None:
        """There is a reason to think that what was seen last is out of date."""
        self._soon = True

    def look(self, wait: float = 0.0) -> Sighting | None:
        """Ask if it is time to, and give back the answer, once; waits up to ``wait`` seconds for one under way."""
        question = _Question(self._pattern, self.group)
        if self._answer is None and question.asks_something and self._is_due(time.monotonic()):
            self._ask(question)
        if self._answer is None or not wait_for_futures([self._answer], wait).done:
            return None
        answer, self._answer = self._answer, None
        # Else it is about an earlier subscription or generation, and perhaps older than what that began with.
        return self._seen(answer) if self._asked == question else None

    def _is_due(self, now: float) -> bool:
        return now >= self._due or (self._soon and now >= self._asked_at + SHORTEST_AGE_SECONDS)

    def _ask(self, question: _Question) -> None:
        self._asked, self._asked_at, self._soon = question, time.monotonic(), False
        cluster, timeout = self._connected(), self._config.request_timeout_ms / 1000
        self._answer = _in_background(f"{self._config.group_id}-topics", lambda: question.ask(cluster, timeout))

    def _seen(self, answer: "Future[Sighting]") -> Sighting | None:
        try:
            seen = answer.result()
        except CoordinatorError as failure:
            log.warning("watching the topics: %s", failure)
            self._due = time.monotonic() + SHORTEST_AGE_SECONDS
            return None
        self._due = self._expiry(missing=self._asked.lacks_something(seen))
        return seen

    def _expiry(self, *, missing: bool) -> float:
        return time.monotonic() + (min(self._max_age, SHORTEST_AGE_SECONDS) if missing else self._max_age)

    def _connected(self) -> ClusterTopics:
        if self._cluster is None:
            self._cluster = ClusterTopics(self._config)
        return self._cluster


def difference(before: Mapping[str, TopicMetadata], now: Mapping[str, TopicMetadata]) -> str | None:
    """The first change of these topics by name, for people; None when there is none."""
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


def _in_background(name: str, job: Callable[[], T]) -> "Future[T]":
    """Do it on a thread that does not keep the process alive: nobody needs its answer any more then."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(job())
        except BaseException as failure:
            result.set_exception(failure)

    threading.Thread(target=run, name=name, daemon=True).start()
    return result
