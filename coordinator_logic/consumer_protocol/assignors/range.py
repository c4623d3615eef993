"""The range assignor: each topic by itself, in runs of neighbouring partitions.

Topics with as many partitions as each other and the same subscribers come out alike: partition p of all of
them goes to the same member, which is what joins between topics need. The price is that the first members
get the odd partition of every topic.
"""

from collections.abc import Mapping, Sequence

from coordinator_logic.consumer_protocol.assignors.base import (
    Assignor,
    GroupSubscription,
    in_member_order,
    subscribed_partitions,
)
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition


class RangeAssignor(Assignor):
    """Kafka's ``range``. Stateless: who has what plays no part."""

    name = "range"

    def assign(
        self, partitions_per_topic: Mapping[str, int], members: Sequence[GroupSubscription]
    ) -> dict[str, list[TopicPartition]]:
        assignment: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        consumers_per_topic: dict[str, list[str]] = {}
        for member in in_member_order(members):
            for topic in set(member.subscription.topics):
                consumers_per_topic.setdefault(topic, []).append(member.member_id)
        for topic, count in subscribed_partitions(partitions_per_topic, members).items():
            for consumer, run in _runs(count, consumers_per_topic[topic]):
                assignment[consumer].extend(TopicPartition(topic, partition) for partition in run)
        return assignment


def _runs(count: int, consumers: list[str]) -> list[tuple[str, range]]:
    """``range(count)`` cut into one run for each consumer, the longer ones first."""
    quota, extra = divmod(count, len(consumers))
    starts = [quota * i + min(i, extra) for i in range(len(consumers) + 1)]
    return [(consumer, range(starts[i], starts[i + 1])) for i, consumer in enumerate(consumers)]
