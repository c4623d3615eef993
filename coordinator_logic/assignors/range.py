"""The range assignor: assign each topic separately, in ranges of consecutive partitions.

Topics with the same number of partitions and the same subscribers are co-partitioned: partition p of each of them goes
to the same member, as joins between topics require. The remaining partitions of every topic go to the first members.

Where racks matter (KIP-881), partitions first go to members in their racks, within each member's quota and with
co-partitioning intact; the other partitions are assigned in ranges.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from coordinator_logic.assignors.base import (
    Assignor,
    GroupSubscription,
    PartitionsByMember,
    TopicMetadata,
    assignable_topics,
    in_member_order,
)
from coordinator_logic.assignors.racks import consumer_racks, partition_racks, racks_matter
from coordinator_logic.embedded_protocols.primitives import TopicPartition


class RangeAssignor(Assignor):
    """Kafka's ``range``. It ignores the partitions that members own."""

    name = "range"

    def assign(self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]) -> PartitionsByMember:
        assignment = {member.member_id: list[TopicPartition]() for member in members}
        racks = consumer_racks(members)
        consumers_per_topic: dict[str, dict[str, str | None]] = {}
        for member in in_member_order(members):
            for topic in member.subscription.topics:
                consumers_per_topic.setdefault(topic, {})[member.member_id] = racks.get(member.member_id)
        states = {
            topic: TopicAssignmentState(metadata, consumers_per_topic[topic])
            for topic, metadata in assignable_topics(topics, members).items()
        }
        if any(state.racks_matter for state in states.values()):
            _assign_in_rack(states.values())
        for topic, state in states.items():
            state.assign_ranges()
            for consumer, partitions in state.assigned.items():
                assignment[consumer].extend(TopicPartition(topic, partition) for partition in sorted(partitions))
        return assignment


class TopicAssignmentState:
    """The assignment of one topic in progress. ``consumers`` are its subscribers in member order, with their racks."""

    def __init__(self, topic: TopicMetadata, consumers: Mapping[str, str | None]) -> None:
        self.consumers = consumers
        self.partitions = topic.partitions
        self._racks = partition_racks(topic)
        racks_of_consumers = [rack for rack in consumers.values() if rack is not None]
        self.racks_matter = racks_matter(racks_of_consumers, self._racks)
        self.assigned: dict[str, list[int]] = {consumer: [] for consumer in consumers}
        self._unassigned = dict.fromkeys(range(topic.partitions))
        self._quota, self._consumers_with_one_more = divmod(topic.partitions, len(consumers))

    def is_in_rack(self, consumer: str, partition: int) -> bool:
        """Return whether the partition has a replica in the consumer's rack, or the consumer has no rack."""
        rack = self.consumers[consumer]
        return rack is None or rack in self._racks[partition]

    def max_assignable(self, consumer: str) -> int:
        """Return how many more partitions the consumer may be assigned."""
        quota = self._quota + (1 if self._consumers_with_one_more else 0)
        return max(0, quota - len(self.assigned[consumer]))

    def assign(self, consumer: str, partitions: Sequence[int]) -> None:
        """Assign partitions to a consumer, at most :meth:`max_assignable`."""
        self.assigned[consumer].extend(partitions)
        if partitions and len(self.assigned[consumer]) > self._quota:
            self._consumers_with_one_more -= 1
        for partition in partitions:
            del self._unassigned[partition]

    def assign_in_rack(self) -> None:
        """Assign each consumer unassigned partitions of its rack, up to its quota."""
        for consumer in self.consumers:
            in_rack = [partition for partition in self._unassigned if self.is_in_rack(consumer, partition)]
            self.assign(consumer, in_rack[: self.max_assignable(consumer)])

    def assign_ranges(self) -> None:
        """Assign the unassigned partitions in ranges, up to each consumer's quota."""
        for consumer in self.consumers:
            self.assign(consumer, list(islice(self._unassigned, self.max_assignable(consumer))))


def _assign_in_rack(states: Iterable[TopicAssignmentState]) -> None:
    """Assign partitions to members in their racks; co-partitioned topics are assigned together."""
    copartitioned: dict[tuple[tuple[str, ...], int], list[TopicAssignmentState]] = {}
    for state in states:
        copartitioned.setdefault((tuple(state.consumers), state.partitions), []).append(state)
    for group in copartitioned.values():
        if len(group) > 1:
            _assign_copartitioned_in_rack(group)
        elif group[0].racks_matter:
            group[0].assign_in_rack()


def _assign_copartitioned_in_rack(group: Sequence[TopicAssignmentState]) -> None:
    """Assign partition p of all topics to the first member below its quota that is in the racks of all of them."""
    # Co-partitioned topics get equal assignments, so a consumer's capacity is the same in all of them.
    first = group[0]
    for partition in range(first.partitions):
        for consumer in first.consumers:
            if first.max_assignable(consumer) and all(state.is_in_rack(consumer, partition) for state in group):
                for state in group:
                    state.assign(consumer, [partition])
                break
