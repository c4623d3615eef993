"""Queries the brokers for topics: their names, their partitions and the racks of their replicas."""

import logging
import time
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

from coordinator_logic.assignors import TopicMetadata
from streaming.client import librdkafka
from streaming.client.consumer.types import ConsumerConfig
from streaming.client.errors import RequestTimedOut

log = logging.getLogger(__name__)


class ClusterTopics:
    """The topics of the cluster, queried from the brokers with every call. Safe to share between threads.

    Timeouts are in seconds; every query raises RequestTimedOut if no broker answers in time. There is nothing to
    close: the connections end with the last reference.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self._admin = AdminClient(librdkafka.admin_config(config.bootstrap_servers, config.client_id, config.config))
        self._refused: set[str] = set()

    def names(self, timeout: float) -> frozenset[str]:
        """The names of all topics that this client is authorized to describe."""
        try:
            return frozenset(self._client().list_topics(timeout=timeout).topics)
        except KafkaException as failure:
            raise librdkafka.no_answer("the names of the topics", failure.args[0], timeout) from failure

    def describe(self, topics: Iterable[str], timeout: float, *, with_racks: bool) -> dict[str, TopicMetadata]:
        """The metadata of those topics that exist and that this client is authorized to describe, by name.

        with_racks: include the racks of each partition's replicas.
        """
        names = sorted(set(topics))
        if not names:
            return {}
        deadline = time.monotonic() + timeout
        futures = self._client().describe_topics(TopicCollection(names), request_timeout=timeout)
        described: dict[str, TopicMetadata] = {}
        for name, future in futures.items():
            try:
                description = future.result(max(0.0, deadline - time.monotonic()))
            except TimeoutError as failure:
                what = f"the partitions of {name!r}"
                raise RequestTimedOut(f"no broker reported {what} within {timeout:g} s") from failure
            except KafkaException as failure:
                self._treat_as_missing(name, failure, timeout)
            else:
                described[name] = _topic_metadata(description, with_racks=with_racks)
        return described

    def _client(self) -> AdminClient:
        # Every lost connection remains queued as an event until a poll.
        self._admin.poll(0)
        return self._admin

    def _treat_as_missing(self, name: str, failure: KafkaException, timeout: float) -> None:
        """Treat a topic that cannot be described as missing, and warn once; raise if no broker answered."""
        error: KafkaError = failure.args[0]
        if error.code() < 0:
            # A negative code is librdkafka's own: no broker answered.
            raise librdkafka.no_answer(f"the partitions of {name!r}", error, timeout) from failure
        if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART and name not in self._refused:
            self._refused.add(name)
            log.warning("treating topic %r as missing, since it cannot be described: %s", name, error.str())


def _topic_metadata(description: TopicDescription, *, with_racks: bool) -> TopicMetadata:
    partitions = sorted(description.partitions, key=lambda partition: partition.id)
    racks = tuple(frozenset(node.rack for node in partition.replicas if node.rack) for partition in partitions)
    return TopicMetadata(len(partitions), racks if with_racks and any(racks) else ())
