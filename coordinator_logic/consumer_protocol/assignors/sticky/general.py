"""The sticky algorithm for members that do not all subscribe to the same topics.

Everybody keeps what they own and still want; the rest goes, scarcest topics first, to whoever has least (in the
partition's rack, where racks matter and somebody there wants it); then
partitions move from members to others with at least two fewer until there is no such move left. Every move
makes the sizes more even, so that this ends, and never at anything less balanced than where it began.
"""

from collections.abc import Iterable, Mapping, Set

from coordinator_logic.consumer_protocol.assignors.base import TopicMetadata, topic_partitions
from coordinator_logic.consumer_protocol.assignors.racks import RackInfo
from coordinator_logic.consumer_protocol.assignors.sticky.partition_movements import PartitionMovements
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition, java_order


class GeneralAssignmentBuilder:
    """Builds one assignment. Among members with equally many partitions the first in ``subscribed`` is preferred.

    ``subscribed`` are each member's topics, ``previous_owners`` members that have lost a partition
    while they were away and get it back if balance allows.
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
            topic: [member for member, wanted in subscribed.items() if topic in wanted] for topic in topics
        }
        self._assignment: dict[str, dict[TopicPartition, None]] = {member: {} for member in subscribed}
        self._consumer: dict[TopicPartition, str] = {}
        # Orders members by how much they have and then by their place, in one number.
        self._load = {member: place for place, member in enumerate(subscribed)}
        self._movements = PartitionMovements()

    def build(self) -> dict[str, list[TopicPartition]]:
        every_owned_kept = self._assign_owned_partitions()
        sorted_partitions = self._sorted_partitions()
        unassigned = [partition for partition in sorted_partitions if partition not in self._consumer]
        self._assign(unassigned)
        if every_owned_kept:
            # Partitions that nobody works on yet are the cheapest to move, and may be all it takes.
            self._reassign(unassigned)
        self._reassign(sorted_partitions)
        return {member: list(partitions) for member, partitions in self._assignment.items()}

    def _assign_owned_partitions(self) -> bool:
        """Whether every member could keep all that it owned."""
        every_owned_kept = True
        for member, owned in self._owned.items():
            for partition in owned:
                if partition.topic in self._subscribed[member] and not self._racks.mismatch(member, partition):
                    self._give(partition, member)
                else:
                    every_owned_kept = False
        return every_owned_kept

    def _assign(self, unassigned: Iterable[TopicPartition]) -> None:
        far = []
        for partition in unassigned:
            consumers = self._consumers_per_topic[partition.topic]
            if self._racks.matter:
                consumers = [member for member in consumers if not self._racks.mismatch(member, partition)]
            if consumers:
                self._give(partition, self._least_loaded(consumers))
            else:
                far.append(partition)
        for partition in far:
            self._give(partition, self._least_loaded(self._consumers_per_topic[partition.topic]))

    def _sorted_partitions(self) -> list[TopicPartition]:
        """All partitions; topics that few can take come first, while those few still have room."""

        def order(topic: str) -> tuple[int, bytes]:
            return len(self._consumers_per_topic[topic]), java_order(topic)

        return list(topic_partitions({topic: self._topics[topic] for topic in sorted(self._topics, key=order)}))

    def _reassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Moves partitions, of those given, until none of them has a better place."""
        is_modified = True
        while is_modified:
            is_modified = False
            for partition in partitions:
                consumer = self._better_consumer(partition)
                if consumer is not None:
                    self._reassign_partition(partition, consumer)
                    is_modified = True

    def _better_consumer(self, partition: TopicPartition) -> str | None:
        # Racks play no part here. Kafka looks for a consumer in the partition's rack that has less, but when there is
        # one, the partition goes to whoever has least, wherever that is.
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
        """Relieves the partition's holder of one in favour of ``consumer``, undoing earlier moves if it can.

        If another partition of the topic has come from ``consumer`` to where this one comes from, both go
        home. Kafka sends only the other one home, which need not take anything off this one's holder.
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
        self._give(partition, consumer)

    def _give(self, partition: TopicPartition, consumer: str) -> None:
        self._assignment[consumer][partition] = None
        self._consumer[partition] = consumer
        self._load[consumer] += len(self._load)

    def _least_loaded(self, consumers: Iterable[str]) -> str:
        return min(consumers, key=self._load.__getitem__)
