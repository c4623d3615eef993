"""The assignors that Kafka's consumers come with, and what it takes to write another.

A group's members agree on the name of an assignor when they join; their leader then runs it. Of the four,
``range`` and ``roundrobin`` start from nothing each time, ``sticky`` leaves partitions where they are when
balance allows (KIP-54), and ``cooperative-sticky`` does so without making anybody stop in between (KIP-429).
"""

from coordinator_logic.consumer_protocol.assignors.base import (
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    TopicMetadata,
    common_rebalance_protocol,
)
from coordinator_logic.consumer_protocol.assignors.range import RangeAssignor
from coordinator_logic.consumer_protocol.assignors.roundrobin import RoundRobinAssignor
from coordinator_logic.consumer_protocol.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

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
    """A new assignor of that name, which has not been told of any assignment yet.

    Raises:
        ValueError: there is no built-in assignor of that name.
    """
    if name not in BUILT_IN_ASSIGNORS:
        raise ValueError(f"no assignor is called {name!r}; there are {', '.join(BUILT_IN_ASSIGNORS)}")
    return BUILT_IN_ASSIGNORS[name]()
