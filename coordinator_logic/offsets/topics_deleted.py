"""TopicsDeleted, an event that Kafka's wire protocol does not have: topics were deleted from the cluster.

A broker's coordinator learns that from the cluster's metadata and deletes the topics' offsets in all its groups,
whether they subscribe to them or not. Here a client, such as the gateway, sends this event to each group.
"""

from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.groups.group_type import type_of
from coordinator_logic.messages import TopicsDeletedRequest, TopicsDeletedResponse
from coordinator_logic.offsets.deletion import deletions
from coordinator_logic.records import TopicPartitions
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: TopicsDeletedRequest) -> None:
    """Delete all offsets of the topics, committed and pending ones; a group that assigns stops assigning the topics."""
    if turn.existing is not None:
        deleted = [
            TopicPartitions(topic, partitions)
            for topic in dict.fromkeys(body.topics)
            if (partitions := _partitions_with_offsets(turn.existing, topic))
        ]
        for record in deletions(deleted, "the topic was deleted"):
            turn.record(record)
        type_of(turn.existing).forget_topics(turn, body.topics)
    turn.reply(request.address, TopicsDeletedResponse())


def _partitions_with_offsets(group: Group, topic: str) -> list[int]:
    return sorted({*group.offsets.get(topic, ()), *group.pending_offsets.partitions(topic)})
