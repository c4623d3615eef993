"""The round-robin assignor: assign the partitions of all topics to the members in turn.

If all subscriptions are equal, the numbers of partitions differ by at most one. Otherwise the result can be unbalanced:
a member that is skipped because it does not subscribe to a topic gets no partition in return.
"""

from collections.abc import Mapping, Sequence

from coordinator_logic.assignors.base import (
    Assignor,
    GroupSubscription,
    PartitionsByMember,
    TopicMetadata,
    assignable_topics,
    in_member_order,
    topic_partitions,
)
from coordinator_logic.embedded_protocols.primitives import TopicPartition


class RoundRobinAssignor(Assignor):
    """Kafka's ``roundrobin``. It ignores the partitions that members own."""

    name = "roundrobin"

    def assign(self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]) -> PartitionsByMember:
        assignment = {member.member_id: list[TopicPartition]() for member in members}
        ring = [(member.member_id, set(member.subscription.topics)) for member in in_member_order(members)]
        position = 0
        for partition in topic_partitions(assignable_topics(topics, members)):
            while partition.topic not in ring[position][1]:
                position = (position + 1) % len(ring)
            assignment[ring[position][0]].append(partition)
            position = (position + 1) % len(ring)
        return assignment
