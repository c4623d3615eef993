"""Accepts clients' connections, and counts each from that moment on, TLS handshakes included."""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable

from streaming.gateway.instrumentation import GatewayMetrics
from streaming.gateway.limits import GatewayLimits

log = logging.getLogger(__name__)

TLS_HANDSHAKE_SECONDS = 10.0
NO_FILES_PAUSE_SECONDS = 1.0
"""How long an acceptor waits when the process has no file for a further connection."""


class OpenConnections:
    """The connections of clients to all listeners, by address, from their accept to their end."""

    def __init__(self, limits: GatewayLimits, metrics: GatewayMetrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._addresses: dict[object, str] = {}
        self._by_address: Counter[str] = Counter()

    def add(self, connection: object, address: str) -> bool:
        """Count a connection; return False if it exceeds a limit."""
        for_address = self._limits.max_connections_per_address
        is_over = for_address is not None and self._by_address[address] >= for_address
        if is_over or len(self._addresses) >= self._limits.max_connections:
            self._metrics.rejected_connections.inc()
            return False
        self._addresses[connection] = address
        self._by_address[address] += 1
        self._metrics.connections.set(len(self._addresses))
        return True

    def remove(self, connection: object) -> None:
        """Count a connection no longer, if it was counted."""
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        self._metrics.connections.set(len(self._addresses))


class Acceptor:
    """Accepts the connections of one listening socket, one in each pass of the event loop.

    new_connection: returns the protocol of a connection from an address; asyncio calls its ``connection_made`` after
    the TLS handshake.
    """

    def __init__(
        self,
        listening: socket.socket,
        tls: ssl.SSLContext | None,
        opened: OpenConnections,
        new_connection: Callable[[str], asyncio.Protocol],
    ) -> None:
        self._listening = listening
        self._tls = tls
        self._opened = opened
        self._new_connection = new_connection
        self._establishing: set[asyncio.Task[None]] = set()
        listening.setblocking(False)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Accept no more connections, and end those whose TLS handshake is not complete."""
        self._accepting.cancel()
        for task in self._establishing:
            task.cancel()
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listening)
            except OSError as failure:
                log.warning("cannot accept a connection: %s", failure)
                await asyncio.sleep(NO_FILES_PAUSE_SECONDS)
                continue
            connection = self._new_connection(address[0])
            if self._opened.add(connection, address[0]):
                task = loop.create_task(self._establish(accepted, connection))
                self._establishing.add(task)
                task.add_done_callback(self._establishing.discard)
            else:
                accepted.close()
            # Without this, a flood of connections would hold the loop.
            await asyncio.sleep(0)

    async def _establish(self, accepted: socket.socket, connection: asyncio.Protocol) -> None:
        is_established = False
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=TLS_HANDSHAKE_SECONDS if self._tls else None,
            )
            is_established = True
        except OSError as failure:
            log.debug("a TLS handshake failed: %s", failure)
        finally:
            if not is_established:
                self._opened.remove(connection)
