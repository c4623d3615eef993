"""What the brokers say of topics: which there are, how many partitions they have, in which racks the replicas are."""

import logging
import time
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

from coordinator_logic.consumer_protocol.assignors import TopicMetadata
from streaming.client.consumer_types import ConsumerConfig
from streaming.client.errors import RequestTimedOut
from streaming.client.librdkafka import admin_config

log = logging.getLogger(__name__)


class ClusterTopics:
    """The topics of the cluster, asked of the brokers each time. Any thread may ask.

    ``timeout`` is in seconds; every question raises RequestTimedOut when no broker answers in time. There is nothing
    to close: the connections end with the last reference.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self._admin = AdminClient(admin_config(config.bootstrap_servers, config.client_id, config.config))
        self._refused: set[str] = set()

    def names(self, timeout: float) -> frozenset[str]:
        """The names of all topics that this client may see."""
        try:
            return frozenset(self._client().list_topics(timeout=timeout).topics)
        except KafkaException as failure:
            raise _not_told("the names of the topics", failure, timeout) from failure

    def describe(self, topics: Iterable[str], timeout: float, *, with_racks: bool) -> dict[str, TopicMetadata]:
        """Those of the topics that exist and that this client may see."""
        names = sorted(set(topics))
        if not names:
            return {}
        deadline = time.monotonic() + timeout
        answers = self._client().describe_topics(TopicCollection(names), request_timeout=timeout)
        described: dict[str, TopicMetadata] = {}
        for name, answer in answers.items():
            try:
                description = answer.result(max(0.0, deadline - time.monotonic()))
            except TimeoutError as failure:
                raise RequestTimedOut(f"no broker told the partitions of {name!r} within {timeout:g} s") from failure
            except KafkaException as failure:
                self._take_refusal(name, failure, timeout)
            else:
                described[name] = _topic_metadata(description, with_racks=with_racks)
        return described

    def _client(self) -> AdminClient:
        # It keeps every lost connection as an event until it is polled.
        self._admin.poll(0)
        return self._admin

    def _take_refusal(self, name: str, failure: KafkaException, timeout: float) -> None:
        """Take a topic that may not be described for one that does not exist, and say so once."""
        error: KafkaError = failure.args[0]
        if error.code() < 0:
            # An error of librdkafka's own: no broker has answered.
            raise _not_told(f"the partitions of {name!r}", failure, timeout) from failure
        if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART and name not in self._refused:
            self._refused.add(name)
            log.warning("topic %r is taken for one that does not exist: %s", name, error.str())


def _topic_metadata(description: TopicDescription, *, with_racks: bool) -> TopicMetadata:
    partitions = sorted(description.partitions, key=lambda partition: partition.id)
    racks = tuple(frozenset(node.rack for node in partition.replicas if node.rack) for partition in partitions)
    return TopicMetadata(len(partitions), racks if with_racks and any(racks) else ())


def _not_told(what: str, failure: KafkaException, timeout: float) -> RequestTimedOut:
    return RequestTimedOut(f"no broker told {what} within {timeout:g} s: {failure.args[0].str()}")
