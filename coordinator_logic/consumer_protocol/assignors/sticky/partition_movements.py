"""Remembers where partitions went while an assignment is being balanced.

Moving one partition of a topic from A to B and another of the same topic from B to A changes nothing but
makes both members start over, so a move that would be the mirror of an earlier one undoes that one instead.
"""

from coordinator_logic.consumer_protocol.topic_partition import TopicPartition


class PartitionMovements:
    """The net move of every partition that is not where it was: from its origin to its holder."""

    def __init__(self) -> None:
        self._origin: dict[TopicPartition, str] = {}
        # Dicts for sets: of several partitions that could be moved back the first moved is taken.
        self._moved: dict[tuple[str, str, str], dict[TopicPartition, None]] = {}

    def origin(self, partition: TopicPartition, holder: str) -> str:
        """Where the partition was before it moved at all."""
        return self._origin.get(partition, holder)

    def any_moved(self, topic: str, source: str, destination: str) -> TopicPartition | None:
        """A partition of ``topic`` that has moved from ``source`` to ``destination``, all in all."""
        return next(iter(self._moved.get((topic, source, destination), ())), None)

    def record(self, partition: TopicPartition, holder: str, destination: str) -> None:
        """The partition leaves ``holder``. Back at its origin it counts as never moved."""
        origin = self._origin.pop(partition, None)
        if origin is None:
            origin = holder
        else:
            del self._moved[partition.topic, origin, holder][partition]
        if origin != destination:
            self._origin[partition] = origin
            self._moved.setdefault((partition.topic, origin, destination), {})[partition] = None
