"""OffsetFetch, for one group or (v8+) for several."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Self

import msgspec
from msgspec.structs import replace

from coordinator_logic.apis import OFFSET_FETCH, OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    FetchedGroup,
    FetchedTopic,
    GroupToFetch,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicToFetch,
)
from streaming.client.errors import error_of
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.error_responses import error_response, failed_fetch
from streaming.gateway.groups.list_requests import MAX_ENTRIES, MAX_GROUPS, entry_count, made_lazily
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import Caller, ClientRequest


async def offset_fetch(backend: GroupBackend, request: ClientRequest) -> OffsetFetchResponse:
    """Fetch committed offsets. The caller needs DESCRIBE on each group, and DESCRIBE on each topic.

    A request of v8+ names several groups. Each entry gets a request event of its own; equal entries have one together.
    Entries beyond :data:`MAX_GROUPS` are answered COORDINATOR_LOAD_IN_PROGRESS: admin clients ask for them again.
    """
    body: OffsetFetchRequest = request.payload
    if request.version >= OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS:

        async def fetch(group: GroupToFetch) -> FetchedGroup:
            return await fetch_group(backend, request, group, require_stable=body.require_stable)

        return OffsetFetchResponse(groups=await fetch_each(backend, request.caller, body.groups, fetch))
    if not await backend.authorizer.allows(request.caller, Operation.DESCRIBE, body.group_id):
        return error_response(OFFSET_FETCH, body, request.version, Error.GROUP_AUTHORIZATION_FAILED)
    if entry_count(body.topics, "partition_indexes") > MAX_ENTRIES:
        refused = [failed_fetch(topic, Error.INVALID_REQUEST) for topic in body.topics or ()]
        return OffsetFetchResponse(error_code=Error.INVALID_REQUEST, topics=refused)
    topics = await _RequestedTopics.authorize(backend, request.caller, body.topics)
    asked = replace(body, topics=topics.authorized)
    response = await backend.request(OFFSET_FETCH, request.version, body.group_id, asked, request.caller)
    if response.error_code != Error.NONE:
        return error_response(OFFSET_FETCH, body, request.version, error_of(response.error_code))
    return OffsetFetchResponse(topics=await topics.complete(response.topics))


async def fetch_each(
    backend: GroupBackend,
    caller: Caller,
    groups: Sequence[GroupToFetch],
    fetch: Callable[[GroupToFetch], Awaitable[FetchedGroup]],
) -> list[FetchedGroup]:
    """The results of ``fetch`` for a request's groups, in their order; an error for those beyond the bounds."""
    asked = groups[:MAX_GROUPS]
    # Lists have no hash: equal entries are found by their bytes.
    keys = await backend.lists.make_each(caller, asked, msgspec.msgpack.encode)
    by_key = dict(zip(keys, asked, strict=True))
    fetched = await backend.ask_each(OFFSET_FETCH, caller, by_key, lambda key: fetch(by_key[key]))

    def entry(position: int) -> FetchedGroup:
        found = fetched.get(keys[position]) if position < len(keys) else None
        return found or FetchedGroup(groups[position].group_id, [], Error.COORDINATOR_LOAD_IN_PROGRESS)

    return made_lazily(range(len(groups)), entry)


async def fetch_group(
    backend: GroupBackend, request: ClientRequest, group: GroupToFetch, *, require_stable: bool
) -> FetchedGroup:
    """Fetch the offsets of one group of a request of v8+."""
    if not await backend.authorizer.allows(request.caller, Operation.DESCRIBE, group.group_id):
        return FetchedGroup(group.group_id, [], Error.GROUP_AUTHORIZATION_FAILED)
    if entry_count(group.topics, "partition_indexes") > MAX_ENTRIES:
        return FetchedGroup(group.group_id, [], Error.INVALID_REQUEST)
    topics = await _RequestedTopics.authorize(backend, request.caller, group.topics)
    body = OffsetFetchRequest(groups=[replace(group, topics=topics.authorized)], require_stable=require_stable)
    response = await backend.request(OFFSET_FETCH, request.version, group.group_id, body, request.caller)
    (fetched,) = response.groups
    if fetched.error_code != Error.NONE:
        return fetched
    return replace(fetched, topics=await topics.complete(fetched.topics))


class _RequestedTopics(NamedTuple):
    """The topics that a request names, split by whether the caller may describe them.

    ``authorized`` is None when the request asks for all topics of the group.
    """

    backend: GroupBackend
    caller: Caller
    authorized: list[TopicToFetch] | None
    unauthorized: list[TopicToFetch]

    @classmethod
    async def authorize(cls, backend: GroupBackend, caller: Caller, topics: Sequence[TopicToFetch] | None) -> Self:
        if topics is None:
            return cls(backend, caller, None, [])
        describable = await backend.authorizer.describable_topics(caller, [topic.name for topic in topics])
        return cls(
            backend,
            caller,
            [topic for topic in topics if topic.name in describable],
            [topic for topic in topics if topic.name not in describable],
        )

    async def complete(self, fetched: list[FetchedTopic]) -> list[FetchedTopic]:
        """Add TOPIC_AUTHORIZATION_FAILED for named topics; drop unauthorized ones where all were requested."""
        if self.authorized is None:
            names = [topic.name for topic in fetched]
            describable = await self.backend.authorizer.describable_topics(self.caller, names)
            return [topic for topic in fetched if topic.name in describable]
        return [*fetched, *(failed_fetch(topic, Error.TOPIC_AUTHORIZATION_FAILED) for topic in self.unauthorized)]
