"""Queries the brokers for topics: their names, their partitions and the racks of their replicas."""

import logging
import time
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import TopicMetadata as ListedTopic

from coordinator_logic.assignors import TopicMetadata
from streaming.client import librdkafka
from streaming.client.consumer.types import ConsumerConfig
from streaming.contract.rights.refusals import reason_of
from streaming.contract.rights.table import Operation
from streaming.contract.topics import LEGAL_TOPIC_NAME

log = logging.getLogger(__name__)

_URL_SAFE = str.maketrans("+/", "-_")
"""librdkafka writes ids in the plain base64 alphabet, Kafka in the one for URLs."""


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

        Each topic is a small request. A single request for their descriptions would leak 102 bytes for each topic
        (confluent-kafka 2.16.1): 8 MB a day for every topic, while another one is missing.
        """
        names = sorted(set(topics))
        deadline = time.monotonic() + timeout
        racks = self._racks(timeout) if with_racks and names else {}
        described: dict[str, TopicMetadata] = {}
        for name in names:
            if not LEGAL_TOPIC_NAME.fullmatch(name):
                # librdkafka would raise exceptions for some of these names, which any member may choose.
                self._warn_once(name, "no topic can have this name")
                continue
            try:
                found = self._client().list_topics(name, timeout=max(0.0, deadline - time.monotonic())).topics[name]
            except KafkaException as failure:
                raise librdkafka.no_answer(f"the partitions of {name!r}", failure.args[0], timeout) from failure
            if found.error is None:
                described[name] = _topic_metadata(found, racks)
            elif found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                self._warn_once(name, reason_of(found.error, Operation.READ, name))
        return described

    def topic_ids(self, topics: Iterable[str], timeout: float) -> dict[str, str]:
        """The ids, in Kafka's text form, of those of these topics that exist, by name.

        Ask for few topics, and rarely: each one costs some memory for good, see :meth:`describe`.
        """
        names = [name for name in sorted(set(topics)) if LEGAL_TOPIC_NAME.fullmatch(name)]
        if not names:
            return {}
        described = self._client().describe_topics(TopicCollection(names), request_timeout=timeout)
        ids: dict[str, str] = {}
        for name, found in described.items():
            try:
                ids[name] = str(found.result().topic_id).translate(_URL_SAFE)
            except KafkaException as failure:
                error = failure.args[0]
                if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise librdkafka.no_answer(f"the id of {name!r}", error, timeout) from failure
        return ids

    def _racks(self, timeout: float) -> dict[int, str]:
        """The racks of the brokers that have one, by node id."""
        try:
            nodes = self._client().describe_cluster(request_timeout=timeout).result().nodes
        except KafkaException as failure:
            raise librdkafka.no_answer("the racks of the brokers", failure.args[0], timeout) from failure
        return {node.id: node.rack for node in nodes if node.rack}

    def _client(self) -> AdminClient:
        # Every lost connection remains queued as an event until a poll.
        self._admin.poll(0)
        return self._admin

    def _warn_once(self, name: str, reason: str) -> None:
        if name not in self._refused:
            self._refused.add(name)
            log.warning("treating topic %r as missing, since it cannot be described: %s", name, reason)


def _topic_metadata(found: ListedTopic, racks: Mapping[int, str]) -> TopicMetadata:
    replicas = [found.partitions[partition].replicas for partition in sorted(found.partitions)]
    racks_of_each = tuple(frozenset(racks[node] for node in nodes if node in racks) for nodes in replicas)
    return TopicMetadata(len(replicas), racks_of_each if any(racks_of_each) else ())
