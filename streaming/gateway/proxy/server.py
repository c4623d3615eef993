"""The gateway's advertised listeners: one for each broker of the real cluster."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from streaming.contract.errors import CannotRun
from streaming.contract.ports import require_free_port
from streaming.contract.topics import TopicNames
from streaming.gateway.instrumentation import GatewayMetrics
from streaming.gateway.options import GatewayOptions
from streaming.gateway.proxy.admission.acceptor import Acceptor, OpenConnections
from streaming.gateway.proxy.admission.request_memory import RequestMemory
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.proxy.connection import ClientConnection
from streaming.gateway.proxy.listener_context import ListenerContext
from streaming.gateway.security.internal_topics.catalog import InternalTopics
from streaming.gateway.security.internal_topics.rules import InternalTopicRules
from streaming.gateway.security.tls import ListenerCertificate
from streaming.gateway.wire.brokers import Address, Broker, ClusterUnreachable
from streaming.gateway.wire.client_request import ServedApi
from streaming.gateway.wire.loop_share import LoopShare

log = logging.getLogger(__name__)

BACKLOG = 1024
PORTS_TO_TRY = 50
"""How many ports a further listener tries, one after the other, until one is free."""

MAX_OVERDUE_CHECK_SECONDS = 10.0
MEMORY_CHECK_SECONDS = 1.0
STALLED_SECONDS = 5.0
"""How long a client may read nothing while others wait for memory."""
CONNECTIONS_PER_CHECK = 500
"""Connections that are checked in one pass of the event loop."""


class GatewayServer:
    """Accepts clients' connections between :meth:`start` and :meth:`stop`, in the running event loop.

    served: the APIs that handlers answer, by key. Requests of all others are passed on to the brokers.
    topics_changed: called when a client has changed topics of the cluster, or may have, with the names of those that
        were deleted.
    """

    def __init__(
        self,
        options: GatewayOptions,
        cluster: Cluster,
        served: Mapping[int, ServedApi],
        metrics: GatewayMetrics | None = None,
        loop_share: LoopShare | None = None,
        topics_changed: Callable[[Collection[str]], None] = lambda _deleted: None,
    ) -> None:
        self.options = options
        self.cluster = cluster
        self.served = served
        self.metrics = metrics or GatewayMetrics()
        self._topics_changed = topics_changed
        self.connections: set[ClientConnection] = set()
        self.opened = OpenConnections(options.limits, self.metrics)
        self.loop_share = loop_share or LoopShare(options.limits.client_loop_percent / 100)
        self.request_memory = RequestMemory(options.limits.queued_max_request_bytes)
        self.addresses: dict[int, Address] = {}
        """The advertised address of each broker, by node id."""
        self._acceptors: list[Acceptor] = []
        self._certificate: ListenerCertificate | None = None
        if options.tls_cert is not None:
            key = Path(options.tls_key) if options.tls_key else None
            self._certificate = ListenerCertificate(Path(options.tls_cert), key)
        rules = InternalTopicRules(
            TopicNames(options.topic_prefix),
            options.internal_topic_users,
            hides_offsets_topic=options.hide_offsets_topic,
        )
        self.internal_topics = InternalTopics(rules, cluster.topic_ids)
        self._background: set[asyncio.Task[None]] = set()
        self._all_closed = asyncio.Event()
        # The metrics' HTTP thread calls this: it copies the set first, since the loop may change it meanwhile.
        self.metrics.buffered.set_function(lambda: sum(each.buffered_bytes for each in tuple(self.connections)))
        self.metrics.request_bytes.set_function(lambda: self.request_memory.used)
        self.metrics.waiting_connections.set_function(lambda: self.request_memory.waiting)

    @property
    def address(self) -> Address:
        """The address for clients' ``bootstrap.servers``: that of the first listener."""
        return next(iter(self.addresses.values()))

    async def start(self) -> None:
        """Find the brokers and return when every listener accepts connections. Raises :class:`CannotRun`."""
        await self.cluster.open()
        require_free_port(*self.options.listen_address, "--listen")
        self._advertise_all()
        if len(self.addresses) < len(self.cluster.brokers):
            raise CannotRun(f"listen {self.options.listen}: no port is free for each broker's listener")
        self._in_background(self._refresh())
        self._in_background(self._close_overdue())
        self._in_background(self._close_stalled())

    async def stop(self) -> None:
        """Accept no more connections and requests, answer those in flight within the grace period, close the rest."""
        for acceptor in self._acceptors:
            acceptor.close()
        for connection in tuple(self.connections):
            connection.drain()
        # It is set from every earlier moment without connections.
        self._all_closed.clear()
        if self.connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), self.options.limits.shutdown_grace_ms / 1000)
        for connection in tuple(self.connections):
            connection.abort()
        for task in self._background:
            task.cancel()

    def advertise(self, broker: Broker) -> Address | None:
        """Return the advertised address of a broker, and start a listener for a new one; None if no port is free."""
        self.cluster.remember(broker)
        if broker.node_id not in self.addresses:
            bound = self._bind()
            if bound is None:
                first = self.options.listen_address.port + len(self.addresses)
                log.error(
                    "clients cannot reach broker %s: none of the ports %s to %s is free for its listener",
                    *(broker.node_id, first, first + PORTS_TO_TRY - 1),
                )
                return None
            tls = self._certificate.context if self._certificate is not None else None
            connection = partial(ClientConnection, self._context(broker.node_id))
            address = Address(self.options.effective_advertised_host, bound.getsockname()[1])
            self._acceptors.append(Acceptor(bound, tls, self.opened, connection))
            self.addresses[broker.node_id] = address
            log.info("broker %s at %s is advertised as %s", broker.node_id, broker.address, address)
        return self.addresses[broker.node_id]

    def _context(self, node_id: int) -> ListenerContext:
        return ListenerContext(
            node_id,
            self.options,
            self.cluster,
            self.served,
            self.metrics,
            self.internal_topics,
            self.loop_share,
            self.request_memory,
            self.advertise,
            self.connections.add,
            self.unregister,
            self._topics_changed,
            is_first=not self.addresses,
        )

    def _advertise_all(self) -> None:
        for node_id in self.cluster.node_ids():
            self.advertise(self.cluster.brokers[node_id])

    def _bind(self) -> socket.socket | None:
        host, first = self.options.listen_address
        port = first and first + len(self.addresses)
        # The first listener has the configured port, which clients know; further ones may take any that is free.
        for candidate in range(port, port + (PORTS_TO_TRY if self.addresses else 1)):
            with suppress(OSError):
                family = socket.AF_INET6 if ":" in host else socket.AF_INET
                return socket.create_server((host, candidate), family=family, backlog=BACKLOG)
        return None

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(self.options.metadata_refresh_ms / 1000)
            if self._certificate is not None:
                self._certificate.reload_if_changed()
            try:
                await self.cluster.refresh()
            except ClusterUnreachable as failure:
                log.warning("%s", failure)
            self._advertise_all()

    async def _close_overdue(self) -> None:
        limits = self.options.limits
        shortest = min(
            limits.connections_max_idle_ms,
            limits.authentication_timeout_ms,
            limits.request_arrival_timeout_ms,
            limits.response_delivery_timeout_ms,
        )
        while True:
            await asyncio.sleep(min(shortest / 1000 / 4, MAX_OVERDUE_CHECK_SECONDS))
            for number, connection in enumerate(tuple(self.connections)):
                connection.close_if_overdue(time.monotonic())
                if number % CONNECTIONS_PER_CHECK == CONNECTIONS_PER_CHECK - 1:
                    await asyncio.sleep(0)

    async def _close_stalled(self) -> None:
        """While there is no memory left, close the connections that hold most of it and whose clients read nothing."""
        while True:
            await asyncio.sleep(MEMORY_CHECK_SECONDS)
            if self.request_memory.has_space:
                continue
            now = time.monotonic()
            stalled = [each for each in tuple(self.connections) if each.stalled_seconds(now) > STALLED_SECONDS]
            for connection in sorted(stalled, key=lambda each: each.unsent_bytes, reverse=True):
                if self.request_memory.has_space:
                    break
                self.metrics.overdue_connections.labels("delivery").inc()
                connection.close_stalled()

    def unregister(self, connection: ClientConnection) -> None:
        """Remove a closed connection."""
        self.connections.discard(connection)
        self.opened.remove(connection)
        if not self.connections:
            self._all_closed.set()
