"""OffsetDelete: delete offsets of topics to which the group does not subscribe (KIP-496).

A group of a protocol type other than ``consumer`` must be Empty, since its subscriptions are unknown.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.messages import DeletedPartition, DeletedTopic, OffsetDeleteRequest, OffsetDeleteResponse
from coordinator_logic.records import OffsetsDeleted, TopicPartitions
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: OffsetDeleteRequest) -> None:
    """Delete committed and pending offsets; a partition without an offset is no error."""
    error = _check(turn.existing, body)
    if error is not Error.NONE:
        turn.reply(request.address, OffsetDeleteResponse(error))
        return
    group = turn.group
    topics, deleted = [], []
    for topic in body.topics:
        subscribed = group.part.is_subscribed_to(topic.name)
        result = Error.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else Error.NONE
        indexes = [partition.partition_index for partition in topic.partitions]
        topics.append(DeletedTopic(topic.name, [DeletedPartition(index, result) for index in indexes]))
        known = [index for index in indexes if group.has_offset(topic.name, index)]
        if known and not subscribed:
            deleted.append(TopicPartitions(topic.name, known))
    if deleted:
        turn.record(OffsetsDeleted(deleted, "deleted by a request"))
    turn.reply(request.address, OffsetDeleteResponse(topics=topics))


def _check(group: Group | None, body: OffsetDeleteRequest) -> Error:
    if not body.group_id:
        return Error.INVALID_GROUP_ID
    if group is None:
        return Error.GROUP_ID_NOT_FOUND
    return group.part.check_offset_deletion()
