"""Kafka's client-side assignors, and the base class for others. Imports the consumer protocol only.

The members of a group vote for an assignor when they join, and the leader runs it. ``range`` and ``roundrobin``
compute each assignment from scratch. ``sticky`` keeps partitions with their owners as far as balance allows (KIP-54).
``cooperative-sticky`` does the same, and members keep consuming during the rebalance (KIP-429).
"""

from coordinator_logic.assignors.base import (
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    TopicMetadata,
    common_rebalance_protocol,
)
from coordinator_logic.assignors.range import RangeAssignor
from coordinator_logic.assignors.roundrobin import RoundRobinAssignor
from coordinator_logic.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

__all__ = [
    "BUILT_IN_ASSIGNORS",
    "Assignor",
    "CooperativeStickyAssignor",
    "GroupSubscription",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "TopicMetadata",
    "assignor_by_name",
    "common_rebalance_protocol",
]

BUILT_IN_ASSIGNORS: dict[str, type[Assignor]] = {
    assignor.name: assignor
    for assignor in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}


def assignor_by_name(name: str) -> Assignor:
    """Create the built-in assignor of that name.

    Raises:
        ValueError: there is no such assignor.
    """
    if name not in BUILT_IN_ASSIGNORS:
        raise ValueError(f"no assignor is called {name!r}; the built-in assignors are {', '.join(BUILT_IN_ASSIGNORS)}")
    return BUILT_IN_ASSIGNORS[name]()
