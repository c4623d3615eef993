"""The real cluster: its brokers, their addresses, and the APIs and versions that each supports."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from kio.index import load_request_schema
from kio.schema.metadata.v4.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.request import MetadataRequest as MetadataRequestV12
from kio.schema.metadata.v12.request import MetadataRequestTopic as MetadataRequestTopicV12
from kio.schema.types import TopicName
from kio.static.protocol import RequestPayload, ResponsePayload

from streaming.contract.errors import CannotRun
from streaming.contract.output.broker_failures import connection_failed
from streaming.contract.waits import KAFKA, waiting_for
from streaming.gateway.options import CLIENT_ID, GatewayOptions
from streaming.gateway.proxy.api_versions import FIRST_VERSION_WITH_SOFTWARE, METADATA_VERSION_WITH_TOPIC_IDS, ApiRanges
from streaming.gateway.proxy.broker_client import BROKER_CONNECTION_ERRORS, broker_connection
from streaming.gateway.security.tls import upstream_context
from streaming.gateway.security.topic_catalog import FoundTopic
from streaming.gateway.wire.api_keys import API_VERSIONS, METADATA
from streaming.gateway.wire.brokers import Address, Broker, ClusterUnreachable, bootstrap_addresses
from streaming.gateway.wire.client_request import ServedApi
from streaming.gateway.wire.codec import KNOWN_VERSIONS
from streaming.gateway.wire.forwarding import Forward
from streaming.gateway.wire.values import text_of_topic_id, topic_id_of_text

log = logging.getLogger(__name__)

SOFTWARE_VERSION = "1"

TOPICS_PER_REQUEST = 200
"""How many topics :meth:`Cluster.topics` requests at once: a larger response would hold the event loop while it is
decoded."""

ProtocolT = TypeVar("ProtocolT", bound=asyncio.Protocol)
T = TypeVar("T")


class Cluster:
    """The cluster as of the last :meth:`refresh`.

    served: the APIs that the gateway's handlers answer, by key; they are part of what it offers for each broker.
    """

    def __init__(self, options: GatewayOptions, served: Mapping[int, ServedApi]) -> None:
        self._options = options
        self._served = served
        self._tls = upstream_context(options.kafka)
        self._timeout = options.limits.upstream_connect_timeout_ms / 1000
        self.brokers: Mapping[int, Broker] = {}
        """The brokers that are part of the cluster now, by node id."""
        self._last_seen: dict[int, Broker] = {}
        self._ranges: dict[int, ApiRanges] = {}
        self._newest_responses: dict[int, ResponsePayload] = {}
        self._answered: Address | None = None
        self.refreshed_at: float | None = None
        """When a broker last named the brokers, in monotonic seconds."""

    def node_ids(self) -> tuple[int, ...]:
        """The node ids of the brokers that are part of the cluster now, in order."""
        return tuple(sorted(self.brokers))

    def ranges(self, node_id: int) -> ApiRanges:
        """Return what the gateway offers for a broker; while that is unknown, what it offers for another one."""
        return self._ranges.get(node_id) or next(iter(self._ranges.values()))

    def remember(self, broker: Broker) -> None:
        """Keep the address of a broker that a response names."""
        self._last_seen[broker.node_id] = broker

    async def open(self) -> None:
        """Refresh for the first time. Raises :class:`CannotRun` when no broker answers."""
        servers = bootstrap_addresses(self._options.bootstrap_servers)
        try:
            with waiting_for(KAFKA, self._timeout * len(servers)):
                await self.refresh()
        except ClusterUnreachable as failure:
            raise CannotRun(str(failure)) from failure
        if not self._ranges:
            raise CannotRun(f"no broker of the cluster at {self._options.bootstrap_servers} can be reached")

    async def refresh(self) -> None:
        """Update the brokers, their addresses and what they support. Raises :class:`ClusterUnreachable`."""
        self.brokers = await self._find_brokers()
        self.refreshed_at = time.monotonic()
        self._last_seen |= self.brokers
        for broker in self.brokers.values():
            try:
                await self._refresh_ranges(broker)
            except BROKER_CONNECTION_ERRORS as failure:
                log.warning("broker %s did not answer ApiVersions: %r", broker.node_id, failure)

    async def topic_ids(self, names: Collection[str]) -> Mapping[bytes, str]:
        """Return the names of existing topics by their ids. Raises :class:`ClusterUnreachable`.

        The gateway's principal needs DESCRIBE on the topics: a broker does not tell others the ids.
        """
        response = await self.ask_any(_metadata_request_v12(map(_by_name, names)))
        return {topic.topic_id.bytes: topic.name for topic in response.topics if topic.topic_id is not None}

    async def topics(self, names: Sequence[str]) -> list[FoundTopic]:
        """Return the brokers' metadata of each topic, in any order; no topic is created.

        A topic that the gateway's principal may not describe, or that does not exist, has an error. Raises
        :class:`ClusterUnreachable`.
        """
        if self._knows_topic_ids():
            return await self._found([_by_name(name) for name in names], _metadata_request_v12)
        return await self._found(names, _metadata_request)

    async def topics_by_id(self, topic_ids: Sequence[str]) -> list[FoundTopic]:
        """Return the brokers' metadata of each topic id, in Kafka's text form; an unknown one has an error.

        Raises :class:`ClusterUnreachable`.
        """
        by_id = [MetadataRequestTopicV12(name=None, topic_id=topic_id_of_text(each)) for each in topic_ids]
        return await self._found(by_id, _metadata_request_v12)

    async def all_topics(self) -> list[FoundTopic]:
        """Return all topics that the gateway's principal may describe. Raises :class:`ClusterUnreachable`."""
        response = await self.ask_any(_metadata_request_v12(None))
        return [_found_topic(topic) for topic in response.topics]

    async def _found(self, topics: Sequence[T], make: Callable[[Sequence[T]], RequestPayload]) -> list[FoundTopic]:
        found: list[FoundTopic] = []
        for first in range(0, len(topics), TOPICS_PER_REQUEST):
            response = await self.ask_any(make(topics[first : first + TOPICS_PER_REQUEST]))
            found.extend(map(_found_topic, response.topics))
        return found

    def _knows_topic_ids(self) -> bool:
        """Whether all brokers give topics ids; before the first refresh, that is assumed."""
        return all(offered[METADATA].highest >= METADATA_VERSION_WITH_TOPIC_IDS for offered in self._ranges.values())

    async def _find_brokers(self) -> dict[int, Broker]:
        """Return the brokers according to the first one that answers, by node id.

        Raises :class:`ClusterUnreachable`: no broker answers, or the answer names none, as that of a cluster's only
        broker while it starts or ends.
        """
        response = await self.ask_any(_metadata_request(()))
        if not response.brokers:
            raise ClusterUnreachable(f"the broker at {self._answered} names no broker")
        return {node.node_id: Broker(node.node_id, Address(node.host, node.port)) for node in response.brokers}

    async def ask_any(self, request: RequestPayload) -> Any:
        """Return the response of the first broker that answers. Raises :class:`ClusterUnreachable`.

        The broker that answered last comes first: an unreachable one may take the whole time limit of a lookup.
        """
        failure: BaseException | None = None
        known = [broker.address for broker in self.brokers.values()]
        addresses = dict.fromkeys([*known, *bootstrap_addresses(self._options.bootstrap_servers)])
        for address in sorted(addresses, key=lambda address: address != self._answered):
            try:
                async with self.connection(address) as send:
                    response = await send(request)
            except BROKER_CONNECTION_ERRORS as caught:
                failure = caught
            else:
                self._answered = address
                return response
        why = "" if failure is None else f": {connection_failed(failure)}"
        reason = f"Kafka at {self._options.bootstrap_servers} does not answer{why}"
        raise ClusterUnreachable(reason) from failure

    def connection(self, address: Address) -> AbstractAsyncContextManager[Forward]:
        """Connect to a broker for the gateway's own requests, see :func:`broker_connection`."""
        return broker_connection(address, self._tls, CLIENT_ID, self._timeout, self._options.kafka)

    async def connect(self, node_id: int, make: Callable[[], ProtocolT], or_another: bool) -> ProtocolT:
        """Connect to a broker or, with ``or_another``, to any other one if that broker is unreachable.

        Raises ``OSError``, of which ``TimeoutError`` is a subclass, when no broker is reachable.
        """
        others = [broker for broker in self.brokers.values() if broker.node_id != node_id] if or_another else []
        last = len(others)
        for attempt, broker in enumerate([self._last_seen[node_id], *others]):
            host, port = broker.address
            server_hostname = host if self._tls else None
            try:
                async with asyncio.timeout(self._timeout):
                    _, protocol = await asyncio.get_running_loop().create_connection(
                        make, host, port, ssl=self._tls, server_hostname=server_hostname
                    )
                return protocol
            except OSError:
                if attempt == last:
                    raise
        raise AssertionError("the last attempt raises")

    async def _refresh_ranges(self, broker: Broker) -> None:
        """Request ApiVersions in its newest version, and in all versions only if that response has changed.

        Each request has a connection of its own: an unauthenticated one gets a single ApiVersions response.
        """
        oldest: Any = await self._send(broker, _api_versions_request(0))
        offered = next(api for api in oldest.api_keys if api.api_key == API_VERSIONS)
        newest = min(offered.max_version, KNOWN_VERSIONS[API_VERSIONS][1])
        responses = {newest: await self._send(broker, _api_versions_request(newest))}
        if self._newest_responses.get(broker.node_id) == responses[newest]:
            return
        for version in range(newest):
            responses[version] = await self._send(broker, _api_versions_request(version))
        self._newest_responses[broker.node_id] = responses[newest]
        self._ranges[broker.node_id] = ApiRanges(responses, self._served)

    async def _send(self, broker: Broker, request: RequestPayload) -> ResponsePayload:
        async with broker_connection(broker.address, self._tls, CLIENT_ID, self._timeout) as send:
            return await send(request)


def _metadata_request(topics: Iterable[str]) -> MetadataRequest:
    """A request for the brokers and these topics, in a version that every broker since Kafka 0.11 supports."""
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=TopicName(topic)) for topic in topics), allow_auto_topic_creation=False
    )


def _metadata_request_v12(topics: Iterable[MetadataRequestTopicV12] | None) -> MetadataRequestV12:
    """A request for topics with their ids, None for all, in a version that every broker since Kafka 2.8 supports."""
    asked = None if topics is None else tuple(topics)
    return MetadataRequestV12(topics=asked, allow_auto_topic_creation=False, include_topic_authorized_operations=False)


def _by_name(name: str) -> MetadataRequestTopicV12:
    return MetadataRequestTopicV12(name=TopicName(name), topic_id=None)


def _found_topic(topic: Any) -> FoundTopic:
    topic_id = text_of_topic_id(getattr(topic, "topic_id", None))
    return FoundTopic(topic.name or "", topic_id, len(topic.partitions), topic.error_code)


def _api_versions_request(version: int) -> RequestPayload:
    request: Any = load_request_schema(API_VERSIONS, version)
    if version < FIRST_VERSION_WITH_SOFTWARE:
        return request()  # type: ignore[no-any-return]
    return request(  # type: ignore[no-any-return]
        client_software_name=CLIENT_ID, client_software_version=SOFTWARE_VERSION
    )
