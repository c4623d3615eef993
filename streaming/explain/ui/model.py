"""What the pages show, and from where they get it."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from streaming.explain.lag import Lag
from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.group import GroupNow
from streaming.explain.live.partitions import PartitionNow
from streaming.explain.live.readers import LiveSource
from streaming.explain.page.lanes import Lanes
from streaming.explain.story.model import Story


class Told(NamedTuple):
    """What the journal has of a group; ``lag`` is None if it was not asked for."""

    story: Story
    lanes: Lanes
    lag: Lag | None = None


class Described(NamedTuple):
    """What the coordinator says of a group, and its partitions with their lag and their owners."""

    group: GroupNow
    partitions: list[PartitionNow]


class UiSource(LiveSource, Protocol):
    """Where the pages get what they show; :class:`streaming.explain.ui.source.CoordinatorSource` reads it.

    All methods may be called on any thread. Those below raise CoordinatorError if the brokers or the coordinator do not
    answer.
    """

    def describe(self, group_id: str) -> Described:
        """A group as of now."""

    def tell(self, group_id: str, since: int, *, with_lag: bool = False) -> Told | None:
        """What the journal has of a group since a time, ms since the epoch; None if it has nothing."""

    def members(self, rows: Mapping[str, FleetRow]) -> Mapping[str, GroupNow]:
        """The groups of these rows with their members."""
