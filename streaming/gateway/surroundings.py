"""What the connections to one listener share, as they see it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from streaming.gateway.addresses import Address, Broker
from streaming.gateway.api_versions import ApiRanges
from streaming.gateway.limits import Limits
from streaming.gateway.metrics import GatewayMetrics
from streaming.gateway.request import ServedApi
from streaming.gateway.upstream import Upstream

if TYPE_CHECKING:
    from streaming.gateway.connection import ClientConnection

__all__ = ["Surroundings"]


class Surroundings(Protocol):
    """What the connections to one listener share."""

    node_id: int
    limits: Limits
    metrics: GatewayMetrics
    requires_sasl: bool

    @property
    def ranges(self) -> ApiRanges:
        """What a client may ask for."""

    @property
    def served(self) -> Mapping[int, ServedApi]:
        """What is answered here, by API key."""

    def show(self, broker: Broker) -> Address | None:
        """Where the gateway stands for a broker."""

    def coordinator_of(self, group_id: str) -> Broker | None:
        """The listener that is shown as a group's coordinator."""

    async def connect(self, make: Callable[[], Upstream]) -> Upstream:
        """A new connection to the broker. ``OSError`` when there is none to be had."""

    def opened(self, connection: "ClientConnection") -> bool:
        """Count a new connection; whether there is room for it."""

    def closed(self, connection: "ClientConnection") -> None:
        """Forget a connection."""
