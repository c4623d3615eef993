"""What a client's connection uses of its listener."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streaming.gateway.instrumentation import GatewayMetrics
from streaming.gateway.options import GatewayOptions
from streaming.gateway.proxy.addresses import coordinator_node
from streaming.gateway.proxy.admission.request_memory import RequestMemory
from streaming.gateway.proxy.api_versions import ApiRanges
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.proxy.upstream import Upstream
from streaming.gateway.security.internal_topics.catalog import InternalTopics
from streaming.gateway.wire.brokers import Address, Broker
from streaming.gateway.wire.client_request import ServedApi
from streaming.gateway.wire.loop_share import LoopShare


@dataclass(frozen=True, eq=False)
class ListenerContext:
    """The listener of one broker, shared by the connections to it.

    node_id: of the broker.
    served: the APIs that handlers answer, by API key.
    advertise: returns the gateway's advertised address for a broker; None if it has no listener for it.
    register: adds a client's connection whose TLS handshake, if any, is complete.
    unregister: removes a closed one.
    topics_changed: called when a broker has answered a request that changes topics, with the names of those that it has
        deleted.
    is_first: whether this is the clients' only bootstrap address.
    """

    node_id: int
    options: GatewayOptions
    cluster: Cluster
    served: Mapping[int, ServedApi]
    metrics: GatewayMetrics
    internal_topics: InternalTopics
    loop_share: LoopShare
    request_memory: RequestMemory
    advertise: Callable[[Broker], Address | None]
    register: Callable[[Any], None]
    unregister: Callable[[Any], None]
    topics_changed: Callable[[Collection[str]], None]
    is_first: bool

    @property
    def ranges(self) -> ApiRanges:
        """The offered APIs and versions."""
        return self.cluster.ranges(self.node_id)

    def brokers_last_named(self) -> Sequence[Broker]:
        """Return the brokers of the cluster, as the last response that named any named them."""
        return tuple(self.cluster.brokers.values())

    def coordinator_of(self, group_id: str) -> Broker | None:
        """Return the broker that is advertised as a group's coordinator, at its advertised address."""
        node_ids = self.cluster.node_ids()
        if not node_ids:
            return None
        node_id = coordinator_node(group_id, node_ids)
        address = self.advertise(self.cluster.brokers[node_id])
        return address and Broker(node_id, address)

    async def connect(self, make: Callable[[], Upstream]) -> Upstream:
        """Open a connection to the broker; at the first listener, any broker will do. Raises ``OSError``."""
        return await self.cluster.connect(self.node_id, make, or_another=self.is_first)
