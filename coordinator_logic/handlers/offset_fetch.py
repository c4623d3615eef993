"""OffsetFetch (API key 9): the positions that a group has committed.

v0-7: one group; v2+ can ask for all its topics, and has an error at the top level. v7+: ``require_stable``
(KIP-447); there are no transactional offsets yet, so every offset is stable. v8+ (KIP-709): several groups, each
with its own error.

An event reaches the coordinator of one group, the one it is keyed by. An entry for another group is answered
NOT_COORDINATOR; a client that wants several groups sends one event for each.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.handlers.api import Api
from coordinator_logic.messages import (
    NO_LEADER_EPOCH,
    NO_OFFSET,
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    GroupToFetch,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicToFetch,
)
from coordinator_logic.turn import Turn

FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_TOP_LEVEL_ERROR = 2


def handle(turn: Turn, request: Request, body: OffsetFetchRequest) -> None:
    """Answer with offsets, or with -1 where nothing is committed; an absent group has committed nothing."""
    if request.address.version < FIRST_VERSION_WITH_GROUPS:
        turn.reply(request.address, OffsetFetchResponse(topics=_fetch(turn.existing, body.topics)))
        return
    groups = [_fetch_group(turn, entry) for entry in body.groups]
    turn.reply(request.address, OffsetFetchResponse(groups=groups))


def _fetch_group(turn: Turn, entry: GroupToFetch) -> FetchedGroup:
    if entry.group_id != turn.group_id:
        return FetchedGroup(entry.group_id, [], Error.NOT_COORDINATOR)
    return FetchedGroup(entry.group_id, _fetch(turn.existing, entry.topics))


def _fetch(group: Group | None, topics: list[TopicToFetch] | None) -> list[FetchedTopic]:
    offsets = group.offsets if group is not None else {}
    if topics is None:
        topics = [TopicToFetch(name, list(partitions)) for name, partitions in offsets.items()]
    fetched = []
    for topic in topics:
        committed = offsets.get(topic.name, {})
        partitions = []
        for index in topic.partition_indexes:
            stored = committed.get(index)
            if stored is None:
                partitions.append(FetchedPartition(index))
            else:
                epoch = NO_LEADER_EPOCH if stored.leader_epoch is None else stored.leader_epoch
                partitions.append(FetchedPartition(index, stored.offset, epoch, stored.metadata))
        fetched.append(FetchedTopic(topic.name, partitions))
    return fetched


def refuse(body: OffsetFetchRequest, version: int, error: Error) -> OffsetFetchResponse:
    """One error for the whole request: per group (v8+), at the top level, or (v0-1) on every partition."""
    if version >= FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(groups=[FetchedGroup(entry.group_id, [], error) for entry in body.groups])
    if version >= FIRST_VERSION_WITH_TOP_LEVEL_ERROR:
        return OffsetFetchResponse(error_code=error)
    topics = [
        FetchedTopic(topic.name, [FetchedPartition(i, NO_OFFSET, error_code=error) for i in topic.partition_indexes])
        for topic in body.topics or []
    ]
    return OffsetFetchResponse(topics=topics)


API = Api("OffsetFetch", 9, 0, 9, OffsetFetchRequest, OffsetFetchResponse, handle, refuse)
