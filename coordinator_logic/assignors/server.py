"""The assignors that the coordinator itself runs (KIP-848): ``uniform``, which is the default, and ``range``.

They work on topic ids. Unlike the assignors of clients they see no racks: Kafka's own do not use them either.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

from coordinator_logic.assignors.base import GroupSubscription, TopicMetadata
from coordinator_logic.assignors.range import RangeAssignor
from coordinator_logic.embedded_protocols.codec import Subscription
from coordinator_logic.embedded_protocols.primitives import grouped_by_topic

Partitions = dict[str, frozenset[int]]
"""Partition numbers by topic id, without empty sets."""


class SubscribedMember(NamedTuple):
    """A member as an assignor sees it. ``previous`` is the target assignment that it had so far."""

    member_id: str
    group_instance_id: str | None
    topic_ids: frozenset[str]
    previous: Partitions


ServerAssignor = Callable[[Sequence[SubscribedMember], Mapping[str, int]], dict[str, Partitions]]
"""Computes the target assignment of every member, by member id.

The second argument is the number of partitions of each topic, by topic id. Subscribed topics that are not in it are
ignored. The result depends on neither the order of the members nor that of the topics.
"""


# ---- range ---------------------------------------------------------------------------------------------------


def assign_ranges(members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> dict[str, Partitions]:
    """Assign each topic in ranges of consecutive partitions, as clients do; previous targets are ignored."""
    topics = {topic_id: TopicMetadata(count) for topic_id, count in partition_counts.items()}
    subscriptions = [
        GroupSubscription(member.member_id, member.group_instance_id, Subscription(sorted(member.topic_ids)))
        for member in members
    ]
    return {
        member_id: {topic_id: frozenset(partitions) for topic_id, partitions in grouped_by_topic(assigned).items()}
        for member_id, assigned in RangeAssignor().assign(topics, subscriptions).items()
    }


# ---- uniform -------------------------------------------------------------------------------------------------

MAX_LEVELLING_ROUNDS = 16
"""Kafka's bound for the passes over all topics when subscriptions differ."""


def assign_uniformly(members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> dict[str, Partitions]:
    """Assign partitions evenly over all topics of the group together, and then keep previous targets.

    Members with equal subscriptions get numbers of partitions that differ by one at most. With different subscriptions
    the assignor levels what the subscriptions allow, topic by topic; overlapping subscriptions may leave larger
    differences.

    Kafka visits members and topics in the order of its hash maps. This assignor visits members that keep most first, so
    that a member does not give up the one partition that it may have more than others; it breaks ties by id.
    """
    assignment = _UniformAssignment(members, partition_counts)
    if assignment.is_homogeneous:
        assignment.trim_to_quotas()
    assignment.assign_unassigned()
    if not assignment.is_homogeneous:
        assignment.level()
    return assignment.targets()


class _UniformAssignment:
    """An assignment in progress. Members and topics are sorted by id; a member's index breaks ties."""

    def __init__(self, members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> None:
        self._members = sorted(members, key=lambda member: member.member_id)
        self._counts = partition_counts
        self._subscribers: dict[str, list[int]] = {}
        for index, member in enumerate(self._members):
            for topic_id in member.topic_ids & partition_counts.keys():
                self._subscribers.setdefault(topic_id, []).append(index)
        self._topics = sorted(self._subscribers, key=self._scarcity)
        # Two members may have one partition in their targets if the stored group is damaged; the first one keeps it.
        self._owners: dict[str, dict[int, int]] = {topic_id: {} for topic_id in self._subscribers}
        self._loads = [0] * len(self._members)
        for index, member in enumerate(self._members):
            for topic_id in member.topic_ids & member.previous.keys() & partition_counts.keys():
                for partition in member.previous[topic_id]:
                    if partition < partition_counts[topic_id] and partition not in self._owners[topic_id]:
                        self._give(topic_id, partition, index)

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same existing topics."""
        return all(len(subscribers) == len(self._members) for subscribers in self._subscribers.values())

    def trim_to_quotas(self) -> None:
        """Take from each member what exceeds its quota, its last partitions first."""
        if not self._members:
            return
        quota, with_one_more = divmod(sum(self._counts[topic_id] for topic_id in self._topics), len(self._members))
        by_load = sorted(range(len(self._members)), key=lambda index: -self._loads[index])
        surplus = {
            index: self._loads[index] - quota - (1 if place < with_one_more else 0)
            for place, index in enumerate(by_load)
        }
        for topic_id in reversed(self._topics):
            owners = self._owners[topic_id]
            for partition in sorted(owners, reverse=True):
                owner = owners[partition]
                if surplus[owner] > 0:
                    surplus[owner] -= 1
                    self._loads[owner] -= 1
                    del owners[partition]

    def assign_unassigned(self) -> None:
        """Give each partition without an owner to the subscriber with the fewest partitions."""
        for topic_id in self._topics:
            owners = self._owners[topic_id]
            free = [partition for partition in range(self._counts[topic_id]) if partition not in owners]
            least_loaded = [(self._loads[index], index) for index in self._subscribers[topic_id]]
            heapify(least_loaded)
            for partition in free:
                load, index = least_loaded[0]
                self._give(topic_id, partition, index)
                heapreplace(least_loaded, (load + 1, index))

    def level(self) -> None:
        """Move partitions from loaded to less loaded subscribers of the same topic, until a round moves nothing."""
        shared = [topic_id for topic_id in self._topics if len(self._subscribers[topic_id]) > 1]
        for _ in range(MAX_LEVELLING_ROUNDS):
            moved = sum(self._level_topic(topic_id) for topic_id in shared)
            if not moved:
                return

    def targets(self) -> dict[str, Partitions]:
        """The assignment of every member, by member id."""
        assigned: list[dict[str, set[int]]] = [{} for _ in self._members]
        for topic_id, owners in self._owners.items():
            for partition, index in owners.items():
                assigned[index].setdefault(topic_id, set()).add(partition)
        return {
            member.member_id: {topic_id: frozenset(partitions) for topic_id, partitions in sorted(by_topic.items())}
            for member, by_topic in zip(self._members, assigned, strict=True)
        }

    def _scarcity(self, topic_id: str) -> tuple[float, int, str]:
        """Sort topics by partitions for each subscriber, most first, then by subscribers, fewest first."""
        subscribers = len(self._subscribers[topic_id])
        return -self._counts[topic_id] / subscribers, subscribers, topic_id

    def _give(self, topic_id: str, partition: int, index: int) -> None:
        self._owners[topic_id][partition] = index
        self._loads[index] += 1

    def _level_topic(self, topic_id: str) -> int:
        """Level one topic; return how many times a partition moved."""
        owners = self._owners[topic_id]
        held: dict[int, list[int]] = {}
        for partition in sorted(owners):
            held.setdefault(owners[partition], []).append(partition)
        moved = 0
        while held:
            least = min(self._subscribers[topic_id], key=lambda index: (self._loads[index], index))
            most = max(held, key=lambda index: (self._loads[index], index))
            if self._loads[most] - self._loads[least] <= 1:
                break
            partition = held[most].pop()
            if not held[most]:
                del held[most]
            held.setdefault(least, []).append(partition)
            self._loads[most] -= 1
            self._give(topic_id, partition, least)
            moved += 1
        return moved


SERVER_ASSIGNORS: dict[str, ServerAssignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""The server-side assignors by name; the first one is the default, as in ``group.consumer.assignors``."""
