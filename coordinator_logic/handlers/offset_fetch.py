"""OffsetFetch (API key 9): the positions that a group has committed.

v0-7: one group; v2+ can ask for all its topics, and has an error at the top level. v7+: ``require_stable``
(KIP-447): a partition for which a transaction is open is UNSTABLE_OFFSET_COMMIT. v8+ (KIP-709): several groups,
each with its own error.

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
        topics = _fetch(turn.existing, body.topics, require_stable=body.require_stable)
        turn.reply(request.address, OffsetFetchResponse(topics=topics))
        return
    groups = [_fetch_group(turn, entry, require_stable=body.require_stable) for entry in body.groups]
    turn.reply(request.address, OffsetFetchResponse(groups=groups))


def _fetch_group(turn: Turn, entry: GroupToFetch, *, require_stable: bool) -> FetchedGroup:
    if entry.group_id != turn.group_id:
        return FetchedGroup(entry.group_id, [], Error.NOT_COORDINATOR)
    return FetchedGroup(entry.group_id, _fetch(turn.existing, entry.topics, require_stable=require_stable))


def _fetch(group: Group | None, topics: list[TopicToFetch] | None, *, require_stable: bool) -> list[FetchedTopic]:
    if topics is None:
        offsets = group.offsets if group is not None else {}
        topics = [TopicToFetch(name, list(partitions)) for name, partitions in offsets.items()]
    return [
        FetchedTopic(
            topic.name,
            [
                FetchedPartition(index)
                if group is None
                else _fetch_partition(group, topic.name, index, require_stable=require_stable)
                for index in topic.partition_indexes
            ],
        )
        for topic in topics
    ]


def _fetch_partition(group: Group, topic: str, index: int, *, require_stable: bool) -> FetchedPartition:
    if require_stable and group.has_pending_offset(topic, index):
        return FetchedPartition(index, error_code=Error.UNSTABLE_OFFSET_COMMIT)
    stored = group.offsets.get(topic, {}).get(index)
    if stored is None:
        return FetchedPartition(index)
    epoch = NO_LEADER_EPOCH if stored.leader_epoch is None else stored.leader_epoch
    return FetchedPartition(index, stored.offset, epoch, stored.metadata)


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
