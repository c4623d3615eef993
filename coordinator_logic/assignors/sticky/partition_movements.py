"""Track the moves of partitions while an assignment is being balanced.

Moving one partition of a topic from A to B and another one from B to A does not change the balance, but makes both
members start over with a new partition. The builder therefore reverts an earlier move instead of adding its opposite.
"""

from coordinator_logic.embedded_protocols.topic_partition import TopicPartition


class PartitionMovements:
    """The net move of each partition, from its origin to its current holder."""

    def __init__(self) -> None:
        self._origin: dict[TopicPartition, str] = {}
        # Dicts as ordered sets: of several candidates, the one that moved first is returned.
        self._moved: dict[tuple[str, str, str], dict[TopicPartition, None]] = {}

    def origin(self, partition: TopicPartition, holder: str) -> str:
        """Return the member that owned the partition before its first move."""
        return self._origin.get(partition, holder)

    def any_moved(self, topic: str, source: str, destination: str) -> TopicPartition | None:
        """Return a partition of ``topic`` with a net move from ``source`` to ``destination``."""
        return next(iter(self._moved.get((topic, source, destination), ())), None)

    def record(self, partition: TopicPartition, holder: str, destination: str) -> None:
        """Record a move from ``holder`` to ``destination``; a partition back at its origin has no net move."""
        origin = self._origin.pop(partition, None)
        if origin is None:
            origin = holder
        else:
            del self._moved[partition.topic, origin, holder][partition]
        if origin != destination:
            self._origin[partition] = origin
            self._moved.setdefault((partition.topic, origin, destination), {})[partition] = None
