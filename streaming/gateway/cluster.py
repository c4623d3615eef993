"""The real cluster: which brokers there are, where, and what each of them offers."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kio.index import load_request_schema
from kio.schema.metadata.v4.request import MetadataRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from streaming.errors import CannotRun
from streaming.gateway.addresses import Address, Broker, bootstrap_addresses
from streaming.gateway.api_versions import API_VERSIONS, SOFTWARE_TOLD_SINCE, ApiRanges
from streaming.gateway.broker_client import ASKING_FAILED, asking
from streaming.gateway.codec import KNOWN_VERSIONS
from streaming.gateway.options import GatewayOptions
from streaming.gateway.request import ServedApi
from streaming.gateway.tls import upstream_context

__all__ = ["Cluster", "ClusterUnreachable"]

log = logging.getLogger(__name__)

CLIENT_ID = "group-coordinator-gateway"
SOFTWARE_VERSION = "1"

NO_TOPICS = MetadataRequest(topics=(), allow_auto_topic_creation=False)
"""Asks for the brokers only, in a version that every broker since Kafka 0.11 serves."""

ProtocolT = TypeVar("ProtocolT", bound=asyncio.Protocol)


class ClusterUnreachable(Exception):
    """No broker could be asked."""


class Cluster:
    """What is known of the cluster; :meth:`refresh` asks again.

    served: what the gateway answers itself, which is part of what a broker is shown to offer.
    """

    def __init__(self, options: GatewayOptions, served: Mapping[int, ServedApi]) -> None:
        self._options = options
        self._served = served
        self._tls = upstream_context(options.kafka)
        self._timeout = options.limits.upstream_connect_timeout_ms / 1000
        self._brokers: dict[int, Broker] = {}
        self._known: dict[int, Broker] = {}
        self._ranges: dict[int, ApiRanges] = {}
        self._newest: dict[int, ResponsePayload] = {}

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """The brokers that are part of the cluster now, by node id."""
        return self._brokers

    def node_ids(self) -> tuple[int, ...]:
        """The node ids of the brokers that are part of the cluster now, in order."""
        return tuple(sorted(self._brokers))

    def ranges(self, node_id: int) -> ApiRanges:
        """What a broker offers; while that is not known, what another one does."""
        return self._ranges.get(node_id) or next(iter(self._ranges.values()))

    def learn(self, broker: Broker) -> None:
        """Take note of a broker that an answer has named."""
        self._known[broker.node_id] = broker

    async def open(self) -> None:
        """Ask for the first time. Raises :class:`CannotRun` when nobody answers."""
        try:
            await self.refresh()
        except ClusterUnreachable as failure:
            raise CannotRun(str(failure)) from failure
        if not self._ranges:
            raise CannotRun(f"no broker of {self._options.bootstrap_servers} can be reached from here")

    async def refresh(self) -> None:
        """Look which brokers there are, and what they offer. Raises :class:`ClusterUnreachable`."""
        self._brokers = await self._find_brokers()
        self._known |= self._brokers
        for broker in self._brokers.values():
            try:
                await self._look_at(broker)
            except ASKING_FAILED as failure:
                log.warning("broker %s does not say what it offers: %r", broker.node_id, failure)

    async def _find_brokers(self) -> dict[int, Broker]:
        """The brokers, as told by the first one that can be asked."""
        failure: BaseException | None = None
        told = [broker.address for broker in self._brokers.values()]
        for address in dict.fromkeys([*told, *bootstrap_addresses(self._options.bootstrap_servers)]):
            try:
                async with asking(address, self._tls, CLIENT_ID, self._timeout, self._options.kafka) as ask:
                    answer: Any = await ask(NO_TOPICS)
            except ASKING_FAILED as caught:
                failure = caught
                continue
            return {node.node_id: Broker(node.node_id, Address(node.host, node.port)) for node in answer.brokers}
        raise ClusterUnreachable(f"Kafka at {self._options.bootstrap_servers} does not answer: {failure!r}")

    async def connect(self, node_id: int, make: Callable[[], ProtocolT], or_another: bool) -> ProtocolT:
        """A connection to a broker, ``or_another`` one when it cannot be reached.

        Raises ``OSError`` (a ``TimeoutError`` is one) when no connection is to be had.
        """
        others = [broker for broker in self._brokers.values() if broker.node_id != node_id] if or_another else []
        last = len(others)
        for attempt, broker in enumerate([self._known[node_id], *others]):
            try:
                return await self._connect(broker.address, make)
            except OSError:
                if attempt == last:
                    raise
        raise AssertionError("the last attempt raises")

    async def _connect(self, address: Address, make: Callable[[], ProtocolT]) -> ProtocolT:
        async with asyncio.timeout(self._timeout):
            _, protocol = await asyncio.get_running_loop().create_connection(
                make, address.host, address.port, ssl=self._tls, server_hostname=address.host if self._tls else None
            )
        return protocol

    async def _look_at(self, broker: Broker) -> None:
        """Ask a broker what it offers; everything is asked only when something has changed.

        A broker answers ApiVersions to everybody, but to who is not authenticated only once in a connection.
        """
        oldest: Any = await self._ask(broker, _api_versions_request(0))
        offered = next(api for api in oldest.api_keys if api.api_key == API_VERSIONS)
        newest = min(offered.max_version, KNOWN_VERSIONS[API_VERSIONS][1])
        answers = {newest: await self._ask(broker, _api_versions_request(newest))}
        if self._newest.get(broker.node_id) == answers[newest]:
            return
        for version in range(newest):
            answers[version] = await self._ask(broker, _api_versions_request(version))
        self._newest[broker.node_id] = answers[newest]
        self._ranges[broker.node_id] = ApiRanges(answers, self._served)

    async def _ask(self, broker: Broker, request: RequestPayload) -> ResponsePayload:
        async with asking(broker.address, self._tls, CLIENT_ID, self._timeout) as ask:
            return await ask(request)


def _api_versions_request(version: int) -> RequestPayload:
    request: Any = load_request_schema(API_VERSIONS, version)
    if version < SOFTWARE_TOLD_SINCE:
        return request()  # type: ignore[no-any-return]
    return request(  # type: ignore[no-any-return]
        client_software_name=CLIENT_ID, client_software_version=SOFTWARE_VERSION
    )
