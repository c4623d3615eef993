"""A gateway in the test's own process, with its event loop on a thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any, TypeVar

from streaming.gateway.groups.backend import IsCoordinator
from streaming.gateway.groups.serving import serving_groups
from streaming.gateway.options import GatewayOptions, load_gateway_options
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.proxy.server import GatewayServer
from streaming.gateway.wire.client_request import ServedApi
from tests.gateway.support.direct_handlers import connected, every_group
from tests.gateway.support.timeouts import response_timeouts
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.waiting import LIMIT_SECONDS

T = TypeVar("T")


MakeApis = Callable[[Cluster], Coroutine[Any, Any, Mapping[int, ServedApi]]]
"""Creates the served APIs in the gateway's event loop, given the cluster for its ``node_ids``."""


class RunningGateway:
    """A gateway in front of real brokers, on free ports of 127.0.0.1.

    apis: the APIs that handlers answer, or a coroutine function that creates them in the gateway's event loop.
    options: options of the gateway by key, such as ``{"max-connections": 3, "kafka.security.protocol": "SSL"}``.
    deleted: the topics that clients have deleted through the gateway.
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
        self.deleted: list[str] = []

    def start(self) -> None:
        """Start the gateway, and return when it accepts connections."""
        self._thread.start()
        self.call(self._start())

    def stop(self) -> None:
        """Stop the gateway, then its event loop."""
        try:
            if hasattr(self, "server"):
                self.call(self.server.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(LIMIT_SECONDS)
            self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the gateway's event loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_SECONDS)

    @property
    def bootstrap_servers(self) -> str:
        """The address of its first listener."""
        return str(self.server.address)

    @property
    def port(self) -> int:
        """The port of its first listener."""
        return self.server.address.port

    def metric(self, name: str, **labels: str) -> float:
        """The current value of a metric, 0 if it has none yet."""
        return self.server.metrics.registry.get_sample_value(f"group_coordinator_gateway_{name}", labels) or 0.0

    async def _start(self) -> None:
        served: dict[int, ServedApi] = {}
        cluster = Cluster(self.options, served)
        served.update(await self._apis(cluster) if callable(self._apis) else self._apis)
        self.server = GatewayServer(self.options, cluster, served, topics_changed=self.deleted.extend)
        await self.server.start()


@contextmanager
def serving_gateway(
    coordinator: CoordinatorProcess,
    is_coordinator: Callable[[Cluster], IsCoordinator] = lambda _cluster: every_group,
) -> Iterator[RunningGateway]:
    """A gateway that serves the group APIs of a coordinator, and waits for answers however slow the machine is.

    is_coordinator: returns where the gateway advertises the coordinator of a group.
    """
    stack = AsyncExitStack()

    async def make(cluster: Cluster) -> Mapping[int, ServedApi]:
        options = GatewayOptions(
            bootstrap_servers=coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix
        )
        groups = serving_groups(options, is_coordinator(cluster), cluster, timeouts=response_timeouts())
        service = await stack.enter_async_context(groups)
        await connected(service.channel)
        assert await asyncio.to_thread(service.directory.wait_complete, LIMIT_SECONDS)
        return service.apis

    running = RunningGateway(coordinator.bootstrap_servers, make)
    try:
        running.start()
        yield running
        running.call(stack.aclose())
    finally:
        running.stop()
