"""The server-side range assignor: the ranges of the client-side one, on topic ids and without racks."""

from collections.abc import Mapping, Sequence

from coordinator_logic.assignors.base import GroupSubscription, TopicMetadata
from coordinator_logic.assignors.range import RangeAssignor
from coordinator_logic.assignors.server.base import Partitions, SubscribedMember
from coordinator_logic.embedded_protocols.codec import Subscription


def assign_ranges(members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> dict[str, Partitions]:
    """Assign each topic in ranges of consecutive partitions; previous targets are ignored."""
    topics = {topic_id: TopicMetadata(count) for topic_id, count in partition_counts.items()}
    subscriptions = [
        GroupSubscription(member.member_id, member.group_instance_id, Subscription(sorted(member.topic_ids)))
        for member in members
    ]
    targets: dict[str, Partitions] = {}
    for member_id, assigned in RangeAssignor().assign(topics, subscriptions).items():
        by_topic: dict[str, set[int]] = {}
        for topic_id, partition in assigned:
            by_topic.setdefault(topic_id, set()).add(partition)
        targets[member_id] = {topic_id: frozenset(partitions) for topic_id, partitions in by_topic.items()}
    return targets
