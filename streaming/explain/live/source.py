"""What the views of all groups show: the rows of the groups, and the coordinator itself."""

from typing import Protocol

from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.readers import Pulse

__all__ = ["LiveSource"]


class LiveSource(Protocol):
    """Where the rows come from; see :class:`streaming.explain.live.readers.LiveFleet`."""

    @property
    def is_complete(self) -> bool:
        """Whether all groups are known."""

    def rows(self) -> list[FleetRow]:
        """A row for each group."""

    def pulse(self) -> Pulse:
        """The coordinator itself."""
