"""OffsetCommit and OffsetFetch of every version: from v10 on, they name topics by their ids (KIP-848).

The message of such a request has the ids of topics and empty names. Events of the coordinator have both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as replace_request
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from coordinator_logic.apis import OFFSET_COMMIT, OFFSET_FETCH
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    FetchedGroup,
    GroupToFetch,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicToCommit,
    TopicToFetch,
)
from streaming.client.errors import CoordinatorNotAvailable
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.error_responses import failed_commit, failed_fetch
from streaming.gateway.groups.handlers import offset_commit as by_name
from streaming.gateway.groups.handlers import offset_fetch as fetch_by_name
from streaming.gateway.groups.handlers.topic_check import merged
from streaming.gateway.groups.list_requests import MAX_ENTRIES, entry_count
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import Caller, ClientRequest

OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS = 10
"""Of OffsetCommit and OffsetFetch (KIP-848)."""

TopicT = TypeVar("TopicT", TopicToCommit, TopicToFetch)


class _Resolved(NamedTuple):
    """The names of topics by id, and the errors of ids that name no topic for the caller."""

    names: Mapping[str, str]
    errors: Mapping[str, Error]

    def named(self, topics: Iterable[TopicT]) -> list[TopicT]:
        """The topics that have a name, with it."""
        return [replace(topic, name=self.names[topic.topic_id]) for topic in topics if topic.topic_id in self.names]

    def failed(self, topics: Iterable[TopicT]) -> list[TopicT]:
        """The topics whose ids name none."""
        return [topic for topic in topics if topic.topic_id in self.errors]


async def _resolve(backend: GroupBackend, caller: Caller, topics: Iterable[TopicT]) -> _Resolved:
    """Find the topics of ids. Raises :class:`CoordinatorNotAvailable` when Kafka does not say which there are."""
    asked = list(dict.fromkeys(topic.topic_id for topic in topics))
    found = await backend.authorizer.topics_of_ids(caller, asked)
    ids = {name: topic_id for topic_id, name in found.names.items()}
    # The topic of the name may be another one by now, or the cached one may be.
    accesses = await backend.authorizer.fitting_topics(caller, ids, lambda name, access: access.topic_id == ids[name])
    names, errors = {}, {}
    for topic_id in asked:
        name = found.names.get(topic_id)
        if topic_id in found.hidden:
            errors[topic_id] = Error.TOPIC_AUTHORIZATION_FAILED
        elif name is None or (accesses[name].may_describe and accesses[name].topic_id != topic_id):
            errors[topic_id] = Error.UNKNOWN_TOPIC_ID
        else:
            names[topic_id] = name
    return _Resolved(names, errors)


# ---- OffsetCommit --------------------------------------------------------------------------------------------------


async def offset_commit(backend: GroupBackend, request: ClientRequest) -> OffsetCommitResponse:
    """Commit offsets. The caller needs READ on the group, and READ on each topic."""
    if request.version < OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS:
        return await by_name.offset_commit(backend, request)
    body: OffsetCommitRequest = request.payload
    async with by_name.append_permit(backend, request) as permit:
        if not await backend.authorizer.allows(request.caller, Operation.READ, body.group_id):
            return _refuse_commit(body, Error.GROUP_AUTHORIZATION_FAILED)
        if entry_count(body.topics) > MAX_ENTRIES:
            return _refuse_commit(body, Error.INVALID_REQUEST)
        try:
            resolved = await _resolve(backend, request.caller, body.topics)
        except CoordinatorNotAvailable:
            return _refuse_commit(body, Error.COORDINATOR_LOAD_IN_PROGRESS)
        named = replace(body, topics=resolved.named(body.topics))
        named_request = replace_request(request, version=OFFSET_COMMIT.max_version)
        response = await by_name.commit(backend, named_request, OFFSET_COMMIT, named, permit)
    refused = [failed_commit(topic, resolved.errors[topic.topic_id]) for topic in resolved.failed(body.topics)]
    return OffsetCommitResponse(merged(refused, response.topics))


def _refuse_commit(body: OffsetCommitRequest, error: Error) -> OffsetCommitResponse:
    return OffsetCommitResponse([failed_commit(topic, error) for topic in body.topics])


# ---- OffsetFetch ---------------------------------------------------------------------------------------------------


async def offset_fetch(backend: GroupBackend, request: ClientRequest) -> OffsetFetchResponse:
    """Fetch committed offsets. The caller needs DESCRIBE on each group, and DESCRIBE on each topic."""
    if request.version < OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS:
        return await fetch_by_name.offset_fetch(backend, request)
    body: OffsetFetchRequest = request.payload
    named_request = replace_request(request, version=OFFSET_FETCH.max_version)

    async def fetch(group: GroupToFetch) -> FetchedGroup:
        return await _fetch_group(backend, named_request, group, require_stable=body.require_stable)

    return OffsetFetchResponse(groups=await fetch_by_name.fetch_each(backend, request.caller, body.groups, fetch))


async def _fetch_group(
    backend: GroupBackend, request: ClientRequest, group: GroupToFetch, *, require_stable: bool
) -> FetchedGroup:
    if not await backend.authorizer.allows(request.caller, Operation.DESCRIBE, group.group_id):
        return FetchedGroup(group.group_id, [], Error.GROUP_AUTHORIZATION_FAILED)
    if entry_count(group.topics, "partition_indexes") > MAX_ENTRIES:
        return FetchedGroup(group.group_id, [], Error.INVALID_REQUEST)
    asked: Sequence[TopicToFetch] = group.topics or ()
    try:
        resolved = await _resolve(backend, request.caller, asked)
    except CoordinatorNotAvailable:
        return FetchedGroup(group.group_id, [], Error.COORDINATOR_LOAD_IN_PROGRESS)
    named = replace(group, topics=None if group.topics is None else resolved.named(asked))
    fetched = await fetch_by_name.fetch_group(backend, request, named, require_stable=require_stable)
    if fetched.error_code != Error.NONE:
        return FetchedGroup(group.group_id, [], fetched.error_code)
    # A version that names topics by their ids cannot name one that exists no longer.
    topics = [topic for topic in fetched.topics if topic.topic_id]
    refused = [failed_fetch(topic, resolved.errors[topic.topic_id]) for topic in resolved.failed(asked)]
    return replace(fetched, topics=[*topics, *refused])
