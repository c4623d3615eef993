"""A gateway in the test's own process, its loop in a thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from streaming.gateway.cluster import Cluster
from streaming.gateway.options import GatewayOptions, load_gateway_options
from streaming.gateway.request import ServedApi
from streaming.gateway.server import GatewayServer

T = TypeVar("T")

LIMIT_SECONDS = 30.0

MakeApis = Callable[[Cluster], Coroutine[Any, Any, Mapping[int, ServedApi]]]
"""Makes the served APIs in the gateway's own loop; the cluster is there to ask for ``node_ids``."""


class RunningGateway:
    """A gateway before real brokers, on free ports of 127.0.0.1.

    apis: what it answers itself, or a coroutine function that makes it, for handlers that need the loop.
    options: any option of a gateway, ``{"max-connections": 3, "kafka.security.protocol": "SSL"}``.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        apis: Mapping[int, ServedApi] | MakeApis | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        given = {"bootstrap-servers": bootstrap_servers, "listen": "127.0.0.1:0", **(options or {})}
        self.options: GatewayOptions = load_gateway_options(given)
        self._apis = apis or {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway", daemon=True)
        self.server: GatewayServer

    def start(self) -> None:
        """Start it and return when it listens."""
        self._thread.start()
        self.call(self._start())

    def stop(self) -> None:
        """Stop it in order, and its loop."""
        try:
            if hasattr(self, "server"):
                self.call(self.server.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(LIMIT_SECONDS)
            self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the gateway's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_SECONDS)

    @property
    def bootstrap_servers(self) -> str:
        """Where its clients connect."""
        return str(self.server.address)

    @property
    def port(self) -> int:
        """The port of its first listener."""
        return self.server.address.port

    def metric(self, name: str, **labels: str) -> float:
        """The value of one of its metrics now, 0 when there is none yet."""
        return self.server.metrics.registry.get_sample_value(f"group_coordinator_gateway_{name}", labels) or 0.0

    async def _start(self) -> None:
        served: dict[int, ServedApi] = {}
        cluster = Cluster(self.options, served)
        served.update(await self._apis(cluster) if callable(self._apis) else self._apis)
        self.server = GatewayServer(self.options, cluster, served)
        await self.server.start()
