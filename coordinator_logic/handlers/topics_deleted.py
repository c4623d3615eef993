"""TopicsDeleted, an event without a counterpart on Kafka's wire: topics are gone from the cluster.

A broker's coordinator sees that in the cluster's metadata and forgets the topics' offsets in all its groups, whether
they read them or not. Here somebody tells each group.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.handlers.api import Api
from coordinator_logic.messages import TopicsDeletedRequest, TopicsDeletedResponse
from coordinator_logic.records import OffsetsDeleted, TopicPartitions
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: TopicsDeletedRequest) -> None:
    """Forget all offsets of the topics, committed and pending ones."""
    if turn.existing is not None:
        deleted = [
            TopicPartitions(topic, partitions)
            for topic in dict.fromkeys(body.topics)
            if (partitions := _partitions_with_offsets(turn.existing, topic))
        ]
        if deleted:
            turn.record(OffsetsDeleted(deleted, "the topic was deleted"))
    turn.reply(request.address, TopicsDeletedResponse())


def _partitions_with_offsets(group: Group, topic: str) -> list[int]:
    return sorted({partition for offsets in group.offset_stores for partition in offsets.get(topic, ())})


def refuse(body: TopicsDeletedRequest, version: int, error: Error) -> TopicsDeletedResponse:
    """One error for the whole request."""
    return TopicsDeletedResponse(error)


API = Api("TopicsDeleted", None, 0, 0, TopicsDeletedRequest, TopicsDeletedResponse, handle, refuse)
