"""The sticky assignors (KIP-54, KIP-341, KIP-429).

An assignment is made in steps, each in a file of its own: what members say they own (``member_data``), whose
word counts (``ownership``), and then one of two algorithms, for equal subscriptions (``constrained``) or
different ones (``general``, with ``partition_movements``). ``assignors`` puts them together.
"""

from coordinator_logic.consumer_protocol.assignors.sticky.assignors import (
    AbstractStickyAssignor,
    CooperativeStickyAssignor,
    StickyAssignment,
    StickyAssignor,
)

__all__ = ["AbstractStickyAssignor", "CooperativeStickyAssignor", "StickyAssignment", "StickyAssignor"]
