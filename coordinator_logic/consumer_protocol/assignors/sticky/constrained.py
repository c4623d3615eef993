"""The sticky algorithm for the usual case: all members subscribe to the same topics.

How many partitions each member ends up with is then known beforehand: the quotient of partitions and members
or one more, and how many members get the one more. Everybody keeps what they own up to that, and what is
left over goes round, first to members in the partition's rack where racks matter. One pass over members and one
or two over partitions, so this is fast for large groups.
"""

from collections.abc import Iterable, Mapping, Sequence

from coordinator_logic.consumer_protocol.assignors.base import TopicMetadata, topic_partitions
from coordinator_logic.consumer_protocol.assignors.racks import RackInfo
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition, java_order


class ConstrainedAssignmentBuilder:
    """Builds one assignment. Members are taken in the order of ``owned``, topics as they come."""

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
            unassigned = self._assign_near(self._racks.scarcest_first(unassigned))
        self._assign_round_robin(unassigned)
        assert all(len(kept) >= self._min_quota for kept in self._assignment.values())
        return self._assignment

    def _assign_owned_partitions(self, member: str, owned: list[TopicPartition]) -> None:
        # By number first: what is cut off at the quota then comes from all topics alike.
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
            self._is_at_min_quota(member)
        self._assignment[member] = owned[:quota]

    def _unassigned_partitions(self) -> list[TopicPartition]:
        kept = {partition for partitions in self._assignment.values() for partition in partitions}
        return [tp for tp in topic_partitions(self._topics) if tp not in kept]

    def _assign_near(self, unassigned: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Fills up, in turns, with partitions of the member's own rack. What is left belongs to racks without room."""
        left = []
        turn = 0
        for partition in unassigned:
            under = self._next_near(partition, self._unfilled_under_min_quota, turn)
            if under is not None:
                turn = self._assign_under_min_quota(partition, under)
                continue
            exactly = self._next_near(partition, self._unfilled_exactly_min_quota, 0)
            if exactly is not None:
                self._assign_over_min_quota(partition, exactly)
            else:
                left.append(partition)
        return left

    def _assign_round_robin(self, unassigned: Iterable[TopicPartition]) -> None:
        """Fills up, in turns, who is below the minimum; then gives one more to who may have it."""
        turn = 0
        for partition in unassigned:
            if self._unfilled_under_min_quota:
                turn = self._assign_under_min_quota(partition, turn)
            else:
                self._assign_over_min_quota(partition, 0)

    def _next_near(self, partition: TopicPartition, members: Sequence[str], turn: int) -> int | None:
        """The place of the next member in the partition's rack, from ``turn`` on and round again."""
        places = (*range(turn, len(members)), *range(turn))
        return next((place for place in places if self._racks.are_near(members[place], partition)), None)

    def _assign_under_min_quota(self, partition: TopicPartition, place: int) -> int:
        """Gives a partition to the member at ``place`` among those below the minimum; whose turn is next."""
        member = self._unfilled_under_min_quota[place]
        self._assignment[member].append(partition)
        if len(self._assignment[member]) < self._min_quota:
            place += 1
        else:
            del self._unfilled_under_min_quota[place]
            self._is_at_min_quota(member)
        return place % max(1, len(self._unfilled_under_min_quota))

    def _assign_over_min_quota(self, partition: TopicPartition, place: int) -> None:
        self._assignment[self._unfilled_exactly_min_quota.pop(place)].append(partition)
        self._count_one_over_min_quota()

    def _is_at_min_quota(self, member: str) -> None:
        if self._over_min_quota < self._expected_over_min_quota:
            self._unfilled_exactly_min_quota.append(member)

    def _count_one_over_min_quota(self) -> None:
        self._over_min_quota += 1
        if self._over_min_quota == self._expected_over_min_quota:
            self._unfilled_exactly_min_quota.clear()
