"""Queries of the brokers for a consumer's topics, on a thread of their own, so that no poll waits for a broker."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from typing import Generic, TypeVar

from streaming.client.consumer.cluster_topics import ClusterTopics
from streaming.client.consumer.types import ConsumerConfig

T = TypeVar("T")


class TopicQueries(Generic[T]):
    """One query at a time: every ``metadata_max_age_ms``, and earlier on request or while a topic does not exist.

    Not thread-safe.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._max_age = config.metadata_max_age_ms / 1000
        # The shortest time between two queries, and their interval while a subscribed topic does not exist.
        self._retry_backoff = config.retry_backoff_max_ms / 1000
        # Created on demand: a follower without a pattern queries nothing.
        self._cluster: ClusterTopics | None = None
        self._answer: Future[T] | None = None
        self._queried_at = self._due = 0.0
        self._refresh_requested = False

    def request_refresh(self) -> None:
        """Query again as soon as ``retry_backoff_max_ms`` allow, because the last answer may be out of date."""
        self._refresh_requested = True

    def _must_refresh(self, now: float) -> bool:
        return self._refresh_requested and now >= self._queried_at + self._retry_backoff

    def _start_query(self, query: Callable[[ClusterTopics, float], T]) -> None:
        """Call ``query`` with the cluster and a timeout in seconds, on a daemon thread."""
        self._queried_at, self._refresh_requested = time.monotonic(), False
        cluster, timeout = self._connected(), self._config.request_timeout_ms / 1000
        self._answer = answer = Future[T]()

        def run() -> None:
            try:
                answer.set_result(query(cluster, timeout))
            except BaseException as failure:
                answer.set_exception(failure)

        threading.Thread(target=run, name=f"{self._config.group_id}-topics", daemon=True).start()

    def _take_answer(self, timeout: float) -> Future[T] | None:
        """The answer to the query, once; waits for it up to ``timeout`` seconds."""
        if self._answer is None or not wait_for_futures([self._answer], timeout).done:
            return None
        answer, self._answer = self._answer, None
        return answer

    def _next_due(self, *, is_missing: bool) -> float:
        """When to query again after an answer. is_missing: whether a subscribed topic does not exist."""
        return time.monotonic() + (min(self._max_age, self._retry_backoff) if is_missing else self._max_age)

    def _connected(self) -> ClusterTopics:
        if self._cluster is None:
            self._cluster = ClusterTopics(self._config)
        return self._cluster
