"""TopicsDeleted, an event that Kafka's wire protocol does not have: topics were deleted from the cluster.

A broker's coordinator learns that from the cluster's metadata and deletes the topics' offsets in all its groups,
whether they subscribe to them or not. Here a client, such as the gateway, sends this event to each group.
"""

from collections.abc import Collection, Iterator

from coordinator_logic.deleted_topics import DeletedTopics
from coordinator_logic.events import Request
from coordinator_logic.group import Group
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
        offsets = (
            each
            for topic, ids in deleted.ids.items()
            if topic in group.offsets or group.pending_offsets.partitions(topic)
            for each in _offsets_of(group, topic, ids)
        )
        for record in deletions(offsets, "the topic was deleted"):
            turn.record(record)
        type_of(group).forget_topics(turn, deleted)
    turn.reply(request.address, TopicsDeletedResponse())


def _offsets_of(group: Group, topic: str, topic_ids: Collection[str]) -> Iterator[TopicPartitions]:
    """The offsets of topics of one name, for each id apart; without ids, of all of that name."""
    stored = group.partitions_of(topic)
    if not topic_ids:
        stored = {"": set().union(*stored.values())}
        topic_ids = ("",)
    unnamed = stored.pop("", set())
    for topic_id in dict.fromkeys(topic_ids):
        partitions = stored.get(topic_id, set()) | unnamed
        unnamed = set()
        if partitions:
            yield TopicPartitions(topic, sorted(partitions), topic_id)
