"""TopicsDeleted, an event that Kafka's wire protocol does not have: topics were deleted from the cluster.

A broker's coordinator learns that from the cluster's metadata and deletes the topics' offsets in all its groups,
whether they subscribe to them or not. Here a client, such as the gateway, sends this event to each group.
"""

from coordinator_logic.deleted_topics import DeletedTopics
from coordinator_logic.events import Request
from coordinator_logic.groups.group_type import type_of
from coordinator_logic.messages import TopicsDeletedRequest, TopicsDeletedResponse
from coordinator_logic.offsets.deletion import deletions
from coordinator_logic.records import TopicPartitions
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: TopicsDeletedRequest) -> None:
    """Delete all offsets of the topics, committed and pending ones; a group that assigns stops assigning the topics.

    As in Kafka, a deletion by id spares the offsets that were committed for another topic of that name, and not those
    of which no id is known.
    """
    group = turn.existing
    if group is not None:
        deleted = DeletedTopics.of(body)
        offsets = []
        for topic, topic_ids in deleted.ids.items():
            for topic_id in dict.fromkeys(topic_ids) or ("",):
                partitions = group.partitions_of(topic, topic_id)
                if partitions:
                    offsets.append(TopicPartitions(topic, partitions, topic_id))
        for record in deletions(offsets, "the topic was deleted"):
            turn.record(record)
        type_of(group).forget_topics(turn, deleted)
    turn.reply(request.address, TopicsDeletedResponse())
