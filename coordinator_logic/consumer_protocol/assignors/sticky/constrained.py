"""The sticky algorithm for the usual case: all members subscribe to the same topics.

How many partitions each member ends up with is then known beforehand: the quotient of partitions and members
or one more, and how many members get the one more. Everybody keeps what they own up to that, and what is
left over goes round. One pass over members and one over partitions, so this is fast for large groups.
"""

from collections import deque
from collections.abc import Iterable, Mapping

from coordinator_logic.consumer_protocol.assignors.base import topic_partitions
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition, java_order


class ConstrainedAssignmentBuilder:
    """Builds one assignment. Members are taken in the order of ``owned``, topics as they come."""

    def __init__(self, partitions_per_topic: Mapping[str, int], owned: Mapping[str, list[TopicPartition]]) -> None:
        total = sum(partitions_per_topic.values())
        self._partitions_per_topic = partitions_per_topic
        self._owned = owned
        self._min_quota, self._expected_over_min_quota = divmod(total, len(owned))
        self._max_quota = self._min_quota + (1 if self._expected_over_min_quota else 0)
        self._over_min_quota = 0
        self._unfilled_under_min_quota: deque[str] = deque()
        self._unfilled_exactly_min_quota: deque[str] = deque()
        self._assignment: dict[str, list[TopicPartition]] = {}

    def build(self) -> dict[str, list[TopicPartition]]:
        for member, owned in self._owned.items():
            self._assign_owned_partitions(member, owned)
        self._assign_unassigned_partitions(self._unassigned_partitions())
        assert all(len(kept) >= self._min_quota for kept in self._assignment.values())
        return self._assignment

    def _assign_owned_partitions(self, member: str, owned: list[TopicPartition]) -> None:
        # By number first: what is cut off at the quota then comes from all topics alike.
        owned = sorted(owned, key=lambda tp: (tp.partition, java_order(tp.topic)))
        if len(owned) < self._min_quota:
            quota = self._min_quota
            self._unfilled_under_min_quota.append(member)
        elif len(owned) >= self._max_quota and self._over_min_quota < self._expected_over_min_quota:
            quota = self._max_quota
            self._over_min_quota += 1
        else:
            quota = self._min_quota
            self._unfilled_exactly_min_quota.append(member)
        self._assignment[member] = owned[:quota]

    def _unassigned_partitions(self) -> list[TopicPartition]:
        kept = {partition for partitions in self._assignment.values() for partition in partitions}
        return [tp for tp in topic_partitions(self._partitions_per_topic) if tp not in kept]

    def _assign_unassigned_partitions(self, unassigned: Iterable[TopicPartition]) -> None:
        """Fills up, in turns, who is below the minimum; then gives one more to who may have it."""
        under_min_quota, exactly_min_quota = self._unfilled_under_min_quota, self._unfilled_exactly_min_quota
        for partition in unassigned:
            if under_min_quota:
                member = under_min_quota.popleft()
                self._assignment[member].append(partition)
                is_filled = len(self._assignment[member]) == self._min_quota
                (exactly_min_quota if is_filled else under_min_quota).append(member)
            else:
                self._assignment[exactly_min_quota.popleft()].append(partition)
