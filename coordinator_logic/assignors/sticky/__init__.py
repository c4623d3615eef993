"""The sticky assignors (KIP-54, KIP-341, KIP-429). Imports the base of assignors and the consumer protocol.

An assignment has three steps: decode the partitions that members claim, resolve conflicting claims (both ``claims``),
and run one of two algorithms: ``constrained`` if all subscriptions are equal, else ``general``. ``assignors`` combines
the steps.
"""

from coordinator_logic.assignors.sticky.assignors import (
    AbstractStickyAssignor,
    CooperativeStickyAssignor,
    StickyAssignment,
    StickyAssignor,
)

__all__ = ["AbstractStickyAssignor", "CooperativeStickyAssignor", "StickyAssignment", "StickyAssignor"]
