"""OffsetFetch: the committed offsets of a group.

An event reaches one group, the one of its key. An entry for another group (v8+) is answered NOT_COORDINATOR; a client
that fetches several groups sends an event for each.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from functools import cache

from coordinator_logic.apis import (
    OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS,
    OFFSET_FETCH_FIRST_VERSION_WITH_TOP_LEVEL_ERROR,
)
from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group
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


def handle(turn: Turn, request: Request, body: OffsetFetchRequest) -> None:
    """Answer with the committed offsets, or -1 for a partition (or a group) that has none.

    With ``require_stable`` (v7+, KIP-447) a partition with a pending offset is UNSTABLE_OFFSET_COMMIT. An offset that
    was committed for a topic with another id than the request's is not there for it.
    """
    if request.address.version < OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS:
        topics = _fetch(turn.existing, body.topics, require_stable=body.require_stable)
        turn.reply(request.address, OffsetFetchResponse(topics=topics))
        return
    fetch_all = cache(lambda: _fetch(turn.existing, None, require_stable=body.require_stable))
    groups = [_fetch_group(turn, entry, fetch_all, require_stable=body.require_stable) for entry in body.groups]
    turn.reply(request.address, OffsetFetchResponse(groups=groups))


def _fetch_group(
    turn: Turn, entry: GroupToFetch, fetch_all: Callable[[], list[FetchedTopic]], *, require_stable: bool
) -> FetchedGroup:
    """Fetch the offsets of an entry. ``fetch_all`` fetches all, once however often the request names the group."""
    if entry.group_id != turn.group_id:
        return FetchedGroup(entry.group_id, [], Error.NOT_COORDINATOR)
    group = turn.existing
    if group is not None:
        error = group.part.check_fetch(entry.member_id, entry.member_epoch)
        if error is not Error.NONE:
            return FetchedGroup(entry.group_id, [], error)
    if entry.topics is None:
        return FetchedGroup(entry.group_id, fetch_all())
    return FetchedGroup(entry.group_id, _fetch(turn.existing, entry.topics, require_stable=require_stable))


def _fetch(group: Group | None, topics: list[TopicToFetch] | None, *, require_stable: bool) -> list[FetchedTopic]:
    if topics is None:
        topics = list(_all_topics(group))
    return [
        FetchedTopic(topic.name, _fetch_partitions(group, topic, require_stable=require_stable), topic.topic_id)
        for topic in topics
    ]


def _fetch_partitions(group: Group | None, topic: TopicToFetch, *, require_stable: bool) -> list[FetchedPartition]:
    """Fetch the offsets of a topic; of a partition that the request repeats, once."""
    indexes = topic.partition_indexes
    if group is None:
        fetched = {index: FetchedPartition(index) for index in dict.fromkeys(indexes)}
    else:
        stored = group.offsets.get(topic.name, {})
        pending = group.pending_offsets.partitions(topic.name) if require_stable else ()
        fetched = {index: _fetch_partition(stored, pending, topic, index) for index in dict.fromkeys(indexes)}
    return [fetched[index] for index in indexes]


def _all_topics(group: Group | None) -> Iterator[TopicToFetch]:
    """The topics with an offset; a name with offsets of several topics, which had it one after another, for each."""
    for name, partitions in () if group is None else group.offsets.items():
        by_id: dict[str, list[int]] = {}
        for index, committed in partitions.items():
            by_id.setdefault(committed.topic_id, []).append(index)
        for topic_id, indexes in by_id.items():
            yield TopicToFetch(name, indexes, topic_id)


def _fetch_partition(
    committed: Mapping[int, CommittedOffset], pending: Container[int], topic: TopicToFetch, index: int
) -> FetchedPartition:
    if index in pending:
        return FetchedPartition(index, error_code=Error.UNSTABLE_OFFSET_COMMIT)
    stored = committed.get(index)
    if stored is None or not stored.is_of(topic.topic_id):
        return FetchedPartition(index)
    epoch = NO_LEADER_EPOCH if stored.leader_epoch is None else stored.leader_epoch
    return FetchedPartition(index, stored.offset, epoch, stored.metadata)


def refuse(body: OffsetFetchRequest, version: int, error: Error) -> OffsetFetchResponse:
    """Report one error for the whole request: on every group (v8+), at the top level, or on every partition (v0-1)."""
    if version >= OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(groups=[FetchedGroup(entry.group_id, [], error) for entry in body.groups])
    if version >= OFFSET_FETCH_FIRST_VERSION_WITH_TOP_LEVEL_ERROR:
        return OffsetFetchResponse(error_code=error)
    topics = [
        FetchedTopic(topic.name, [FetchedPartition(i, NO_OFFSET, error_code=error) for i in topic.partition_indexes])
        for topic in body.topics or []
    ]
    return OffsetFetchResponse(topics=topics)
