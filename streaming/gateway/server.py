"""The gateway's listeners: one for each broker of the real cluster."""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path

from streaming.errors import CannotRun
from streaming.gateway.addresses import Address, Broker, coordinator_node
from streaming.gateway.api_versions import ApiRanges
from streaming.gateway.cluster import Cluster, ClusterUnreachable
from streaming.gateway.connection import ClientConnection
from streaming.gateway.metrics import GatewayMetrics
from streaming.gateway.options import GatewayOptions
from streaming.gateway.request import ServedApi
from streaming.gateway.tls import listener_context
from streaming.gateway.upstream import Upstream

__all__ = ["GatewayServer"]

log = logging.getLogger(__name__)

BACKLOG = 1024
TLS_HANDSHAKE_SECONDS = 10.0
PORTS_TO_TRY = 50
"""A new broker's port is the next one that is free."""

LONGEST_SWEEP_SECONDS = 30.0


class GatewayServer:
    """Stands before a cluster between :meth:`start` and :meth:`stop`, in the running loop.

    served: the APIs that are answered here, by key. All others are the brokers'.
    """

    def __init__(
        self,
        options: GatewayOptions,
        cluster: Cluster,
        served: Mapping[int, ServedApi],
        metrics: GatewayMetrics | None = None,
    ) -> None:
        self.options = options
        self.cluster = cluster
        self.served = served
        self.metrics = metrics or GatewayMetrics()
        self.connections: set[ClientConnection] = set()
        self._listeners: dict[int, _Listener] = {}
        self._tls = _listener_tls(options)
        self._background: set[asyncio.Task[None]] = set()
        self._all_closed = asyncio.Event()
        # Asked for by the thread that serves the metrics: the copy is made in one go.
        self.metrics.buffered.set_function(lambda: sum(found.buffered_bytes for found in tuple(self.connections)))

    @property
    def address(self) -> Address:
        """Where clients connect first."""
        return next(iter(self._listeners.values())).address

    @property
    def addresses(self) -> Mapping[int, Address]:
        """Where each broker is shown, by node id."""
        return {node_id: listener.address for node_id, listener in self._listeners.items()}

    async def start(self) -> None:
        """Find the brokers and listen. Raises :class:`CannotRun`."""
        await self.cluster.open()
        self._show_all()
        if len(self._listeners) < len(self.cluster.brokers):
            raise CannotRun(f"listen {self.options.listen}: no port can be had there")
        # Whoever is told that the gateway runs must not be refused.
        await asyncio.gather(*self._background)
        self._in_background(self._refresh())
        self._in_background(self._close_idle())

    async def stop(self) -> None:
        """Take no more connections and requests, finish what is in flight within the limit, close everything."""
        for listener in self._listeners.values():
            listener.close()
        for connection in tuple(self.connections):
            connection.drain()
        if self.connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), self.options.limits.shutdown_grace_ms / 1000)
        for connection in tuple(self.connections):
            connection.abort()
        for task in self._background:
            task.cancel()

    def show(self, broker: Broker) -> Address | None:
        """Where the gateway stands for a broker; a broker that is new gets a listener."""
        self.cluster.learn(broker)
        listener = self._listeners.get(broker.node_id)
        if listener is None:
            bound = self._bind()
            if bound is None:
                log.error("there is no port for broker %s: clients are not told of it", broker.node_id)
                return None
            listener = _Listener(self, broker.node_id, bound, is_first=not self._listeners)
            self._listeners[broker.node_id] = listener
            self._in_background(listener.serve(self._tls))
            log.info("broker %s at %s is shown at %s", broker.node_id, broker.address, listener.address)
        return listener.address

    def _show_all(self) -> None:
        for node_id in self.cluster.node_ids():
            self.show(self.cluster.brokers[node_id])

    def _bind(self) -> socket.socket | None:
        host, first = self.options.listen_address
        port = first and first + len(self._listeners)
        # The first listener is where clients are told to come: no other port will do.
        for candidate in range(port, port + (PORTS_TO_TRY if self._listeners else 1)):
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
            try:
                await self.cluster.refresh()
            except ClusterUnreachable as failure:
                log.warning("%s", failure)
            self._show_all()

    async def _close_idle(self) -> None:
        longest = self.options.limits.connections_max_idle_ms / 1000
        while True:
            await asyncio.sleep(min(longest / 4, LONGEST_SWEEP_SECONDS))
            latest = time.monotonic() - longest
            for connection in [found for found in self.connections if found.is_idle_since(latest)]:
                self.metrics.idle_connections.inc()
                connection.abort()

    def opened(self, connection: ClientConnection) -> bool:
        """Count a new connection; whether there is room for it."""
        if len(self.connections) >= self.options.limits.max_connections:
            self.metrics.rejected_connections.inc()
            return False
        self.connections.add(connection)
        self.metrics.connections.set(len(self.connections))
        return True

    def closed(self, connection: ClientConnection) -> None:
        """Forget a connection."""
        self.connections.discard(connection)
        self.metrics.connections.set(len(self.connections))
        if not self.connections:
            self._all_closed.set()


class _Listener:
    """A port that stands for a broker; what the connections to it share."""

    def __init__(self, gateway: GatewayServer, node_id: int, bound: socket.socket, is_first: bool) -> None:
        self.node_id = node_id
        self.limits = gateway.options.limits
        self.metrics = gateway.metrics
        self.requires_sasl = gateway.options.requires_sasl
        self.served = gateway.served
        self.address = Address(gateway.options.shown_host, bound.getsockname()[1])
        self.show = gateway.show
        self.opened = gateway.opened
        self.closed = gateway.closed
        self._gateway = gateway
        self._socket = bound
        self._is_first = is_first
        self._server: asyncio.Server | None = None

    @property
    def ranges(self) -> ApiRanges:
        """What a client may ask for here."""
        return self._gateway.cluster.ranges(self.node_id)

    async def serve(self, tls: ssl.SSLContext | None) -> None:
        """Begin to take connections."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: ClientConnection(self),
            sock=self._socket,
            ssl=tls,
            ssl_handshake_timeout=TLS_HANDSHAKE_SECONDS if tls else None,
        )

    def close(self) -> None:
        """Take no more connections."""
        if self._server is not None:
            self._server.close()
        self._socket.close()

    def coordinator_of(self, group_id: str) -> Broker | None:
        """The listener that is shown as a group's coordinator."""
        node_ids = self._gateway.cluster.node_ids()
        if not node_ids:
            return None
        node_id = coordinator_node(group_id, node_ids)
        address = self._gateway.show(self._gateway.cluster.brokers[node_id])
        return address and Broker(node_id, address)

    async def connect(self, make: Callable[[], Upstream]) -> Upstream:
        """A new connection to the broker. Clients know the first listener only, so that one must always answer."""
        return await self._gateway.cluster.connect(self.node_id, make, or_another=self._is_first)


def _listener_tls(options: GatewayOptions) -> ssl.SSLContext | None:
    if options.tls_cert is None:
        return None
    return listener_context(Path(options.tls_cert), Path(options.tls_key) if options.tls_key else None)
