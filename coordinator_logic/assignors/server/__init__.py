"""The assignors that the coordinator itself runs (KIP-848): ``uniform``, which is the default, and ``range``.

They work on topic ids. Unlike the assignors of clients they see no racks: Kafka's own do not use them either.
"""

from coordinator_logic.assignors.server.base import Partitions, ServerAssignor, SubscribedMember
from coordinator_logic.assignors.server.range import assign_ranges
from coordinator_logic.assignors.server.uniform import assign_uniformly

__all__ = ["SERVER_ASSIGNORS", "Partitions", "ServerAssignor", "SubscribedMember"]

SERVER_ASSIGNORS: dict[str, ServerAssignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""The server-side assignors by name; the first one is the default, as in ``group.consumer.assignors``."""
