"""The sticky algorithm for members with different subscriptions.

Members keep the owned partitions that they still subscribe to. Each other partition goes to the least loaded of its
subscribers, topics with the fewest subscribers first; where racks matter, subscribers in the partition's racks take
precedence. Then partitions move to members with at least two fewer until no such move is left. Every move makes the
assignment more balanced, so the algorithm terminates.
"""

from collections.abc import Iterable, Mapping, Set

from coordinator_logic.assignors.base import TopicMetadata, topic_partitions
from coordinator_logic.assignors.racks import RackInfo
from coordinator_logic.embedded_protocols.primitives import TopicPartition, java_order


class PartitionMovements:
    """The net move of each partition, from its origin to its current holder.

    Moving one partition of a topic from A to B and another one from B to A does not change the balance, but makes both
    members start over with a new partition. The builder therefore reverts an earlier move instead of adding its
    opposite.
    """

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


class GeneralAssignmentBuilder:
    """Builds one assignment. Of members with equally many partitions, the first in ``subscribed`` is preferred.

    Args:
        topics: The topics with at least one subscriber.
        racks: The racks of members and partitions.
        subscribed: The topics of each member.
        owned: The partitions of each member at the start.
        previous_owners: Members that lost a partition while they were absent; they get it back if balance allows.
    """

    def __init__(
        self,
        topics: Mapping[str, TopicMetadata],
        racks: RackInfo,
        subscribed: Mapping[str, Set[str]],
        owned: Mapping[str, list[TopicPartition]],
        previous_owners: Mapping[TopicPartition, str],
    ) -> None:
        self._topics = topics
        self._racks = racks
        self._subscribed = subscribed
        self._owned = owned
        self._previous_owners = previous_owners
        self._consumers_per_topic = {
            topic: [member for member, names in subscribed.items() if topic in names] for topic in topics
        }
        self._assignment: dict[str, dict[TopicPartition, None]] = {member: {} for member in subscribed}
        self._consumer: dict[TopicPartition, str] = {}
        # One number that orders members by their number of partitions and then by position.
        self._load = {member: position for position, member in enumerate(subscribed)}
        self._movements = PartitionMovements()

    def build(self) -> dict[str, list[TopicPartition]]:
        every_owned_kept = self._assign_owned_partitions()
        sorted_partitions = self._sorted_partitions()
        unassigned = [partition for partition in sorted_partitions if partition not in self._consumer]
        self._assign_unassigned(unassigned)
        if every_owned_kept:
            # Partitions that no member consumes yet are the cheapest to move, and may suffice.
            self._reassign(unassigned)
        self._reassign(sorted_partitions)
        return {member: list(partitions) for member, partitions in self._assignment.items()}

    def _assign_owned_partitions(self) -> bool:
        """Assign owned partitions to their owners; return whether every member keeps all of them."""
        every_owned_kept = True
        for member, owned in self._owned.items():
            for partition in owned:
                if partition.topic in self._subscribed[member] and not self._racks.mismatch(member, partition):
                    self._assign_to(partition, member)
                else:
                    every_owned_kept = False
        return every_owned_kept

    def _assign_unassigned(self, unassigned: Iterable[TopicPartition]) -> None:
        without_rack = []
        for partition in unassigned:
            consumers = self._consumers_per_topic[partition.topic]
            if self._racks.matter:
                consumers = [member for member in consumers if not self._racks.mismatch(member, partition)]
            if consumers:
                self._assign_to(partition, self._least_loaded(consumers))
            else:
                without_rack.append(partition)
        for partition in without_rack:
            self._assign_to(partition, self._least_loaded(self._consumers_per_topic[partition.topic]))

    def _sorted_partitions(self) -> list[TopicPartition]:
        """Return all partitions, those of topics with the fewest subscribers first, while these still have capacity."""

        def order(topic: str) -> tuple[int, bytes]:
            return len(self._consumers_per_topic[topic]), java_order(topic)

        return list(topic_partitions({topic: self._topics[topic] for topic in sorted(self._topics, key=order)}))

    def _reassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Move the given partitions until none of them has a better consumer."""
        is_modified = True
        while is_modified:
            is_modified = False
            for partition in partitions:
                consumer = self._better_consumer(partition)
                if consumer is not None:
                    self._reassign_partition(partition, consumer)
                    is_modified = True

    def _better_consumer(self, partition: TopicPartition) -> str | None:
        # Racks are ignored. Kafka searches for a less loaded consumer in the partition's racks, but if it finds one,
        # it moves the partition to the least loaded consumer of any rack.
        size = len(self._assignment[self._consumer[partition]])
        previous = self._previous_owners.get(partition)
        if (
            previous is not None
            and partition.topic in self._subscribed[previous]
            and size > len(self._assignment[previous]) + 1
        ):
            return previous
        least_loaded = self._least_loaded(self._consumers_per_topic[partition.topic])
        return least_loaded if size > len(self._assignment[least_loaded]) + 1 else None

    def _reassign_partition(self, partition: TopicPartition, consumer: str) -> None:
        """Move a partition to ``consumer``, or revert an earlier move with the same effect on the balance.

        If another partition of the topic moved from ``consumer`` to this one's origin, both return to their origins.
        Kafka returns only the other one, which need not reduce the number of partitions of this one's holder.
        """
        holder = self._consumer[partition]
        origin = self._movements.origin(partition, holder)
        moved_against = self._movements.any_moved(partition.topic, source=consumer, destination=origin)
        if moved_against is None:
            self._move(partition, consumer)
            return
        self._move(moved_against, consumer)
        if origin != holder:
            self._move(partition, origin)

    def _move(self, partition: TopicPartition, consumer: str) -> None:
        holder = self._consumer[partition]
        self._movements.record(partition, holder, consumer)
        del self._assignment[holder][partition]
        self._load[holder] -= len(self._load)
        self._assign_to(partition, consumer)

    def _assign_to(self, partition: TopicPartition, consumer: str) -> None:
        self._assignment[consumer][partition] = None
        self._consumer[partition] = consumer
        self._load[consumer] += len(self._load)

    def _least_loaded(self, consumers: Iterable[str]) -> str:
        return min(consumers, key=self._load.__getitem__)
