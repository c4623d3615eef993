"""Rack awareness of assignors: match the racks of consumers with the racks of replicas (KIP-881).

A consumer that fetches from a replica in its own rack (KIP-392) saves traffic between racks. Assignors prefer members
in a partition's racks, but never at the expense of balance.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Set

from coordinator_logic.assignors.base import GroupSubscription, TopicMetadata
from coordinator_logic.embedded_protocols.primitives import TopicPartition


def consumer_racks(members: Iterable[GroupSubscription]) -> dict[str, str]:
    """Return the rack of each member that has one, by member id."""
    return {member.member_id: rack for member in members if (rack := member.subscription.rack_id)}


def partition_racks(topic: TopicMetadata) -> list[frozenset[str]]:
    """Return the racks of each partition of a topic, by partition number."""
    return list(topic.racks) if topic.racks else [frozenset()] * topic.partitions


def racks_matter(racks_of_consumers: Collection[str], racks_of_partitions: Collection[Set[str]]) -> bool:
    """Return whether the choice of the consumer makes a difference to rack locality.

    It makes none if no replica is in a consumer's rack, or if all partitions have replicas in all racks.
    """
    all_racks: frozenset[str] = frozenset().union(*racks_of_partitions)
    return not all_racks.isdisjoint(racks_of_consumers) and any(racks != all_racks for racks in racks_of_partitions)


class RackInfo:
    """The racks of a group's members and of the partitions that they subscribe to.

    If ``matter`` is false, racks make no difference, and no member is a mismatch.
    """

    def __init__(self, topics: Mapping[str, TopicMetadata], members: Iterable[GroupSubscription]) -> None:
        self._consumer_racks = consumer_racks(members)
        self._partition_racks = {topic: partition_racks(metadata) for topic, metadata in topics.items()}
        self.matter = racks_matter(
            self._consumer_racks.values(),
            [racks for by_number in self._partition_racks.values() for racks in by_number],
        )

    def share_rack(self, member_id: str, partition: TopicPartition) -> bool:
        """Return whether the partition has a replica in the member's rack."""
        return self._consumer_racks.get(member_id) in self._racks(partition)

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """Return whether the member has a rack in which the partition has no replica."""
        rack = self._consumer_racks.get(member_id)
        return self.matter and rack is not None and rack not in self._racks(partition)

    def scarcest_first(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Sort partitions by the number of consumers in their racks, fewest first, while those still have capacity."""
        consumers_in_rack = Counter(self._consumer_racks.values())
        return sorted(partitions, key=lambda partition: sum(consumers_in_rack[r] for r in self._racks(partition)))

    def _racks(self, partition: TopicPartition) -> frozenset[str]:
        return self._partition_racks[partition.topic][partition.partition]
