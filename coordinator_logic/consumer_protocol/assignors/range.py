"""The range assignor: each topic by itself, in runs of neighbouring partitions.

Topics with as many partitions as each other and the same subscribers come out alike: partition p of all of
them goes to the same member, which is what joins between topics need. The price is that the first members
get the odd partition of every topic.

Where racks matter (KIP-881), partitions go to members in their rack first, as far as no member gets more than its share
and topics that would come out alike still do; only the rest is cut into runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from coordinator_logic.consumer_protocol.assignors.base import (
    Assignor,
    GroupSubscription,
    TopicMetadata,
    assignable_topics,
    in_member_order,
)
from coordinator_logic.consumer_protocol.assignors.racks import consumer_racks, partition_racks, racks_matter
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition


class RangeAssignor(Assignor):
    """Kafka's ``range``. Stateless: who has what plays no part."""

    name = "range"

    def assign(
        self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]
    ) -> dict[str, list[TopicPartition]]:
        assignment: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
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
            _assign_near(states.values())
        for topic, state in states.items():
            state.assign_runs()
            for consumer, partitions in state.assigned.items():
                assignment[consumer].extend(TopicPartition(topic, partition) for partition in sorted(partitions))
        return assignment


class TopicAssignmentState:
    """One topic while it is being divided among its subscribers, given with their racks in member order."""

    def __init__(self, topic: TopicMetadata, consumers: Mapping[str, str | None]) -> None:
        self.consumers = consumers
        self.partitions = topic.partitions
        self._racks = partition_racks(topic)
        racks_of_consumers = [rack for rack in consumers.values() if rack is not None]
        self.racks_matter = racks_matter(racks_of_consumers, self._racks)
        self.assigned: dict[str, list[int]] = {consumer: [] for consumer in consumers}
        self._unassigned = dict.fromkeys(range(topic.partitions))
        self._quota, self._consumers_with_one_more = divmod(topic.partitions, len(consumers))

    def is_near(self, consumer: str, partition: int) -> bool:
        """A consumer without a rack is near to everything."""
        rack = self.consumers[consumer]
        return rack is None or rack in self._racks[partition]

    def max_assignable(self, consumer: str) -> int:
        """How many partitions the consumer may be given now, on top of those it has."""
        quota = self._quota + (1 if self._consumers_with_one_more else 0)
        return max(0, quota - len(self.assigned[consumer]))

    def assign(self, consumer: str, partitions: Sequence[int]) -> None:
        """Not more than :meth:`max_assignable`."""
        self.assigned[consumer].extend(partitions)
        if partitions and len(self.assigned[consumer]) > self._quota:
            self._consumers_with_one_more -= 1
        for partition in partitions:
            del self._unassigned[partition]

    def assign_near(self) -> None:
        for consumer in self.consumers:
            near = [partition for partition in self._unassigned if self.is_near(consumer, partition)]
            self.assign(consumer, near[: self.max_assignable(consumer)])

    def assign_runs(self) -> None:
        for consumer in self.consumers:
            self.assign(consumer, list(islice(self._unassigned, self.max_assignable(consumer))))


def _assign_near(states: Iterable[TopicAssignmentState]) -> None:
    """What can be given to members in the same rack, topics that are to come out alike together."""
    copartitioned: dict[tuple[tuple[str, ...], int], list[TopicAssignmentState]] = {}
    for state in states:
        copartitioned.setdefault((tuple(state.consumers), state.partitions), []).append(state)
    for alike in copartitioned.values():
        if len(alike) > 1:
            _assign_copartitioned_near(alike)
        elif alike[0].racks_matter:
            alike[0].assign_near()


def _assign_copartitioned_near(alike: Sequence[TopicAssignmentState]) -> None:
    """Partition p of all topics to the first member that is near to all of them and has room."""
    # The topics are alike, so what holds for the room in one holds for all.
    first = alike[0]
    for partition in range(first.partitions):
        for consumer in first.consumers:
            if first.max_assignable(consumer) and all(state.is_near(consumer, partition) for state in alike):
                for state in alike:
                    state.assign(consumer, [partition])
                break
