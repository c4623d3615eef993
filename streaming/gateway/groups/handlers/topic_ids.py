"""OffsetCommit and OffsetFetch of every version: from v10 on, they name topics by their ids (KIP-848)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace as replace_request
from typing import NamedTuple

from coordinator_logic import messages
from coordinator_logic.apis import OFFSET_COMMIT, OFFSET_FETCH
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    CommittedPartition,
    FetchedPartition,
    GroupToFetch,
    PartitionToCommit,
    TopicToCommit,
    TopicToFetch,
)
from streaming.client.errors import CoordinatorNotAvailable
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.handlers import offset_commit as by_name
from streaming.gateway.groups.handlers import offset_fetch as fetch_by_name
from streaming.gateway.groups.handlers.topic_id_messages import (
    CommittedTopicId,
    FetchedGroupOfIds,
    FetchedTopicId,
    GroupOfIdsToFetch,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicIdToCommit,
    TopicIdToFetch,
)
from streaming.gateway.groups.list_requests import MAX_ENTRIES, entry_count, made_lazily
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import Caller, ClientRequest
from streaming.gateway.wire.topic_ids import OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS

__all__ = ["offset_commit", "offset_fetch"]


class _Resolved(NamedTuple):
    """The names of topics by id, and the errors of ids that name no topic for the caller."""

    names: Mapping[str, str]
    errors: Mapping[str, Error]


async def _resolve(backend: GroupBackend, caller: Caller, topic_ids: Iterable[str]) -> _Resolved:
    """Find the topics of ids. Raises :class:`CoordinatorNotAvailable` when Kafka does not say which there are."""
    asked = list(dict.fromkeys(topic_ids))
    found = await backend.authorizer.topics_of_ids(caller, asked)
    accesses = await backend.authorizer.topics(caller, found.names.values())
    names, errors = {}, {}
    for topic_id in asked:
        name = found.names.get(topic_id)
        if topic_id in found.hidden:
            errors[topic_id] = Error.TOPIC_AUTHORIZATION_FAILED
        # The topic of the name may be another one by now.
        elif name is None or (accesses[name].may_describe and accesses[name].topic_id != topic_id):
            errors[topic_id] = Error.UNKNOWN_TOPIC_ID
        else:
            names[topic_id] = name
    return _Resolved(names, errors)


# ---- OffsetCommit --------------------------------------------------------------------------------------------------


async def offset_commit(
    backend: GroupBackend, request: ClientRequest
) -> messages.OffsetCommitResponse | OffsetCommitResponse:
    """Commit offsets. The caller needs READ on the group, and READ on each topic."""
    if request.version < OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS:
        return await by_name.offset_commit(backend, request)
    async with by_name.commit_turn(backend, request) as turn:
        body = await backend.decoded(request, OffsetCommitRequest)
        if not await backend.authorizer.allows(request.caller, Operation.READ, body.group_id):
            return _refuse_commit(body, Error.GROUP_AUTHORIZATION_FAILED)
        if entry_count(body.topics) > MAX_ENTRIES:
            return _refuse_commit(body, Error.INVALID_REQUEST)
        try:
            resolved = await _resolve(backend, request.caller, (topic.topic_id for topic in body.topics))
        except CoordinatorNotAvailable:
            return _refuse_commit(body, Error.COORDINATOR_LOAD_IN_PROGRESS)
        refused = [
            _failed(topic, resolved.errors[topic.topic_id])
            for topic in body.topics
            if topic.topic_id in resolved.errors
        ]
        named = messages.OffsetCommitRequest(
            body.group_id,
            [
                TopicToCommit(resolved.names[topic.topic_id], topic.partitions)
                for topic in body.topics
                if topic.topic_id in resolved.names
            ],
            body.generation_id_or_member_epoch,
            body.member_id,
            body.group_instance_id,
        )
        named_request = replace_request(request, version=OFFSET_COMMIT.max_version)
        response = await by_name.commit(backend, named_request, OFFSET_COMMIT, named, turn)
    ids = {name: topic_id for topic_id, name in resolved.names.items()}
    answered = [CommittedTopicId(ids[topic.name], topic.partitions) for topic in response.topics]
    return OffsetCommitResponse([*refused, *answered])


def _failed(topic: TopicIdToCommit, error: Error) -> CommittedTopicId:
    def partition(named: PartitionToCommit) -> CommittedPartition:
        return CommittedPartition(named.partition_index, error)

    return CommittedTopicId(topic.topic_id, made_lazily(topic.partitions, partition))


def _refuse_commit(body: OffsetCommitRequest, error: Error) -> OffsetCommitResponse:
    return OffsetCommitResponse([_failed(topic, error) for topic in body.topics])


# ---- OffsetFetch ---------------------------------------------------------------------------------------------------


async def offset_fetch(
    backend: GroupBackend, request: ClientRequest
) -> messages.OffsetFetchResponse | OffsetFetchResponse:
    """Fetch committed offsets. The caller needs DESCRIBE on each group, and DESCRIBE on each topic."""
    if request.version < OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS:
        return await fetch_by_name.offset_fetch(backend, request)
    body = await backend.decoded(request, OffsetFetchRequest)
    named_request = replace_request(request, version=OFFSET_FETCH.max_version)

    async def fetch(group: GroupOfIdsToFetch) -> FetchedGroupOfIds:
        return await _fetch_group(backend, named_request, group, require_stable=body.require_stable)

    def failed(group: GroupOfIdsToFetch) -> FetchedGroupOfIds:
        return FetchedGroupOfIds(group.group_id, [], Error.COORDINATOR_LOAD_IN_PROGRESS)

    return OffsetFetchResponse(await fetch_by_name.fetch_each(backend, request.caller, body.groups, fetch, failed))


async def _fetch_group(
    backend: GroupBackend, request: ClientRequest, group: GroupOfIdsToFetch, *, require_stable: bool
) -> FetchedGroupOfIds:
    if not await backend.authorizer.allows(request.caller, Operation.DESCRIBE, group.group_id):
        return FetchedGroupOfIds(group.group_id, [], Error.GROUP_AUTHORIZATION_FAILED)
    if entry_count(group.topics, "partition_indexes") > MAX_ENTRIES:
        return FetchedGroupOfIds(group.group_id, [], Error.INVALID_REQUEST)
    try:
        resolved = await _resolve(backend, request.caller, (topic.topic_id for topic in group.topics or ()))
        named = GroupToFetch(group.group_id, _named(group.topics, resolved), group.member_id, group.member_epoch)
        fetched = await fetch_by_name.fetch_group(backend, request, named, require_stable=require_stable)
        accesses = await backend.authorizer.topics(request.caller, [topic.name for topic in fetched.topics])
    except CoordinatorNotAvailable:
        return FetchedGroupOfIds(group.group_id, [], Error.COORDINATOR_LOAD_IN_PROGRESS)
    if fetched.error_code != Error.NONE:
        return FetchedGroupOfIds(group.group_id, [], fetched.error_code)
    ids = {name: access.topic_id for name, access in accesses.items()}
    ids |= {name: topic_id for topic_id, name in resolved.names.items()}
    topics = [FetchedTopicId(ids[topic.name], topic.partitions) for topic in fetched.topics]
    refused = [
        _failed_fetch(topic, resolved.errors[topic.topic_id])
        for topic in group.topics or ()
        if topic.topic_id in resolved.errors
    ]
    return FetchedGroupOfIds(group.group_id, [*topics, *refused])


def _named(topics: Iterable[TopicIdToFetch] | None, resolved: _Resolved) -> list[TopicToFetch] | None:
    if topics is None:
        return None
    return [
        TopicToFetch(resolved.names[topic.topic_id], topic.partition_indexes)
        for topic in topics
        if topic.topic_id in resolved.names
    ]


def _failed_fetch(topic: TopicIdToFetch, error: Error) -> FetchedTopicId:
    partitions = [FetchedPartition(index, error_code=error) for index in topic.partition_indexes]
    return FetchedTopicId(topic.topic_id, partitions)
