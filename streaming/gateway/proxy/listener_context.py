"""What a client's connection uses of its listener, and the listener's server of the connection."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from streaming.gateway.instrumentation import GatewayMetrics
from streaming.gateway.limits import GatewayLimits
from streaming.gateway.proxy.admission.request_memory import RequestMemory
from streaming.gateway.proxy.api_versions import ApiRanges
from streaming.gateway.proxy.upstream import Upstream
from streaming.gateway.security.internal_topics.catalog import InternalTopics
from streaming.gateway.wire.brokers import Address, Broker
from streaming.gateway.wire.client_request import ServedApi
from streaming.gateway.wire.loop_share import LoopShare

__all__ = ["ListenerContext", "OpenConnection"]


class OpenConnection(Protocol):
    """A client's connection, as the server that closes it sees it."""

    @property
    def buffered_bytes(self) -> int:
        """Bytes that are buffered in either direction."""

    def close_if_overdue(self, now: float) -> None:
        """Abort the connection if its client did not do in time what it must; ``now`` is in monotonic seconds."""

    def drain(self) -> None:
        """Accept no further requests, and close once those in flight are answered."""

    def abort(self) -> None:
        """Close the connection at once."""


class ListenerContext(Protocol):
    """The listener of one broker, shared by the connections to it."""

    node_id: int
    limits: GatewayLimits
    metrics: GatewayMetrics
    requires_sasl: bool
    oauth_principal_claim: str
    internal_topics: InternalTopics
    loop_share: LoopShare
    request_memory: RequestMemory

    @property
    def ranges(self) -> ApiRanges:
        """The offered APIs and versions."""

    @property
    def served(self) -> Mapping[int, ServedApi]:
        """The APIs that handlers answer, by API key."""

    def advertise(self, broker: Broker) -> Address | None:
        """Return the gateway's advertised address for a broker; None if it has no listener for it."""

    def brokers_last_named(self) -> Sequence[Broker]:
        """Return the brokers of the cluster, as the last response that named any named them."""

    def coordinator_of(self, group_id: str) -> Broker | None:
        """Return the broker that is advertised as a group's coordinator, at its advertised address."""

    async def connect(self, make: Callable[[], Upstream]) -> Upstream:
        """Open a connection to the broker. Raises ``OSError``."""

    def register(self, connection: OpenConnection) -> None:
        """Add a connection whose TLS handshake, if any, is complete."""

    def unregister(self, connection: OpenConnection) -> None:
        """Remove a closed connection."""
