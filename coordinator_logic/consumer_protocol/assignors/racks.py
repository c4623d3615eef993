"""Who is near which partition: racks of consumers beside racks of replicas (KIP-881).

A consumer that fetches from a replica in its own rack (KIP-392) saves traffic between racks. An assignor that knows the
racks gives out what is near first, and never at the expense of balance.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Set

from coordinator_logic.consumer_protocol.assignors.base import GroupSubscription, TopicMetadata
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition


def consumer_racks(members: Iterable[GroupSubscription]) -> dict[str, str]:
    """The rack of each member id that has one."""
    return {member.member_id: rack for member in members if (rack := member.subscription.rack_id)}


def partition_racks(topic: TopicMetadata) -> list[frozenset[str]]:
    """The racks of each partition of a topic, by number."""
    return list(topic.racks) if topic.racks else [frozenset()] * topic.partitions


def racks_matter(racks_of_consumers: Collection[str], racks_of_partitions: Collection[Set[str]]) -> bool:
    """Whether some consumers are nearer to some of the partitions than others are.

    That is not so when no replica is in any consumer's rack, nor when every partition is in all racks.
    """
    all_racks: frozenset[str] = frozenset().union(*racks_of_partitions)
    return not all_racks.isdisjoint(racks_of_consumers) and any(racks != all_racks for racks in racks_of_partitions)


class RackInfo:
    """All members of a group beside all partitions that they want.

    ``matter`` tells whether the racks make a difference; as long as they do not, nothing counts as a mismatch.
    """

    def __init__(self, topics: Mapping[str, TopicMetadata], members: Iterable[GroupSubscription]) -> None:
        self._consumer_racks = consumer_racks(members)
        self._partition_racks = {topic: partition_racks(metadata) for topic, metadata in topics.items()}
        self.matter = racks_matter(
            self._consumer_racks.values(),
            [racks for by_number in self._partition_racks.values() for racks in by_number],
        )

    def are_near(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether both are in the same rack."""
        return self._consumer_racks.get(member_id) in self._racks(partition)

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack and the partition is not there."""
        rack = self._consumer_racks.get(member_id)
        return self.matter and rack is not None and rack not in self._racks(partition)

    def scarcest_first(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Partitions that few consumers are near to come first, while those few still have room."""
        consumers_in_rack = Counter(self._consumer_racks.values())
        return sorted(partitions, key=lambda partition: sum(consumers_in_rack[r] for r in self._racks(partition)))

    def _racks(self, partition: TopicPartition) -> frozenset[str]:
        return self._partition_racks[partition.topic][partition.partition]
