"""The round-robin assignor: all partitions of all topics dealt out one by one, like cards.

With equal subscriptions nobody has more than one partition more than anybody else. With different ones the
result may be lopsided, because whoever is passed over for one topic does not catch up on the next.
"""

from collections.abc import Mapping, Sequence

from coordinator_logic.consumer_protocol.assignors.base import (
    Assignor,
    GroupSubscription,
    TopicMetadata,
    assignable_topics,
    in_member_order,
    topic_partitions,
)
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition


class RoundRobinAssignor(Assignor):
    """Kafka's ``roundrobin``. Stateless: who has what plays no part."""

    name = "roundrobin"

    def assign(
        self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]
    ) -> dict[str, list[TopicPartition]]:
        assignment: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        ring = [(member.member_id, set(member.subscription.topics)) for member in in_member_order(members)]
        position = 0
        for partition in topic_partitions(assignable_topics(topics, members)):
            while partition.topic not in ring[position][1]:
                position = (position + 1) % len(ring)
            assignment[ring[position][0]].append(partition)
            position = (position + 1) % len(ring)
        return assignment
