"""The sticky algorithm for the usual case, in which all members subscribe to the same topics.

The quotas are known in advance: each member gets the quotient of partitions and members (the minimum quota), and as
many members as the remainder get one more. Members keep owned partitions up to their quota. The others are assigned in
turn, first to members in a partition's racks where racks matter. One pass over the members and at most two over the
partitions make the algorithm fast for large groups.
"""

from collections.abc import Iterable, Mapping, Sequence

from coordinator_logic.assignors.base import TopicMetadata, topic_partitions
from coordinator_logic.assignors.racks import RackInfo
from coordinator_logic.embedded_protocols.primitives import TopicPartition, java_order


class ConstrainedAssignmentBuilder:
    """Builds one assignment. Members are processed in the order of ``owned``, topics in the given order."""

    def __init__(
        self, topics: Mapping[str, TopicMetadata], racks: RackInfo, owned: Mapping[str, list[TopicPartition]]
    ) -> None:
        total = sum(topic.partitions for topic in topics.values())
        self._topics = topics
        self._racks = racks
        self._owned = owned
        self._min_quota, self._expected_over_min_quota = divmod(total, len(owned))
        self._max_quota = self._min_quota + (1 if self._expected_over_min_quota else 0)
        self._over_min_quota = 0
        self._unfilled_under_min_quota: list[str] = []
        self._unfilled_exactly_min_quota: list[str] = []
        self._assignment: dict[str, list[TopicPartition]] = {}

    def build(self) -> dict[str, list[TopicPartition]]:
        for member, owned in self._owned.items():
            self._assign_owned_partitions(member, owned)
        unassigned: Iterable[TopicPartition] = self._unassigned_partitions()
        if self._racks.matter:
            unassigned = self._assign_in_rack(self._racks.scarcest_first(unassigned))
        self._assign_round_robin(unassigned)
        assert all(len(kept) >= self._min_quota for kept in self._assignment.values())
        return self._assignment

    def _assign_owned_partitions(self, member: str, owned: list[TopicPartition]) -> None:
        # Sorting by number first spreads the partitions beyond the quota over all topics.
        owned = sorted(owned, key=lambda tp: (tp.partition, java_order(tp.topic)))
        if self._racks.matter:
            owned = [partition for partition in owned if not self._racks.mismatch(member, partition)]
        if len(owned) < self._min_quota:
            quota = self._min_quota
            self._unfilled_under_min_quota.append(member)
        elif len(owned) >= self._max_quota and self._over_min_quota < self._expected_over_min_quota:
            quota = self._max_quota
            self._count_one_over_min_quota()
        else:
            quota = self._min_quota
            self._note_min_quota_reached(member)
        self._assignment[member] = owned[:quota]

    def _unassigned_partitions(self) -> list[TopicPartition]:
        kept = {partition for partitions in self._assignment.values() for partition in partitions}
        return [tp for tp in topic_partitions(self._topics) if tp not in kept]

    def _assign_in_rack(self, unassigned: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Assign partitions in turn to members in their racks; return those whose racks have no capacity left."""
        remaining = []
        turn = 0
        for partition in unassigned:
            under = self._next_in_rack(partition, self._unfilled_under_min_quota, turn)
            if under is not None:
                turn = self._assign_under_min_quota(partition, under)
                continue
            exactly = self._next_in_rack(partition, self._unfilled_exactly_min_quota, 0)
            if exactly is not None:
                self._assign_over_min_quota(partition, exactly)
            else:
                remaining.append(partition)
        return remaining

    def _assign_round_robin(self, unassigned: Iterable[TopicPartition]) -> None:
        """Assign partitions in turn to members below the minimum quota, then one more to members that may exceed it."""
        turn = 0
        for partition in unassigned:
            if self._unfilled_under_min_quota:
                turn = self._assign_under_min_quota(partition, turn)
            else:
                self._assign_over_min_quota(partition, 0)

    def _next_in_rack(self, partition: TopicPartition, members: Sequence[str], turn: int) -> int | None:
        """Return the index of the next member in the partition's racks, starting at ``turn`` and wrapping around."""
        indexes = (*range(turn, len(members)), *range(turn))
        return next((index for index in indexes if self._racks.share_rack(members[index], partition)), None)

    def _assign_under_min_quota(self, partition: TopicPartition, index: int) -> int:
        """Assign a partition to the member at ``index`` of those below the minimum; return the next member's index."""
        member = self._unfilled_under_min_quota[index]
        self._assignment[member].append(partition)
        if len(self._assignment[member]) < self._min_quota:
            index += 1
        else:
            del self._unfilled_under_min_quota[index]
            self._note_min_quota_reached(member)
        return index % max(1, len(self._unfilled_under_min_quota))

    def _assign_over_min_quota(self, partition: TopicPartition, index: int) -> None:
        self._assignment[self._unfilled_exactly_min_quota.pop(index)].append(partition)
        self._count_one_over_min_quota()

    def _note_min_quota_reached(self, member: str) -> None:
        if self._over_min_quota < self._expected_over_min_quota:
            self._unfilled_exactly_min_quota.append(member)

    def _count_one_over_min_quota(self) -> None:
        self._over_min_quota += 1
        if self._over_min_quota == self._expected_over_min_quota:
            self._unfilled_exactly_min_quota.clear()
