"""How a consumer group becomes a group of another type when members go: what the room needs of such a conversion."""

from collections.abc import Collection
from typing import Protocol

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.turn import Turn


class Downgrade(Protocol):
    """A conversion of a consumer group whose last member of the consumer group protocol goes."""

    def happens_without(self, consumer: ConsumerGroup, leaving: Collection[str], config: CoordinatorConfig) -> bool:
        """Whether the group is converted when these members go."""

    def happens_with(self, consumer: ConsumerGroup, static: ConsumerMember, config: CoordinatorConfig) -> bool:
        """Whether the group is converted when this instance joins with the classic protocol."""

    def downgrade(self, turn: Turn, consumer: ConsumerGroup, rebalance_because: str | None) -> None:
        """Convert the group, whose members stay; they rebalance if the end of a reason is given."""


DOWNGRADES: list[Downgrade] = []
"""The conversion, which the registry of types adds."""
