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
from streaming.client.errors import CoordinatorNotAvailable, error_of
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.error_responses import error_response, failed_fetch
from streaming.gateway.groups.list_requests import MAX_ENTRIES, MAX_GROUPS, entry_count, made_lazily
from streaming.gateway.security.permissions import Operation
from streaming.gateway.security.topic_catalog import RENEWAL_SECONDS
from streaming.gateway.wire.client_request import Caller, ClientRequest

MOST_OFFSET_BYTES = 4_200
"""An offset in an answer, with metadata as long as ``offset.metadata.max.bytes`` allows by default."""


async def offset_fetch(backend: GroupBackend, request: ClientRequest) -> OffsetFetchResponse:
    """Fetch committed offsets. The caller needs DESCRIBE on each group, and DESCRIBE on each topic.

    A request of v8+ names several groups. Each entry gets a request event of its own; equal ones are one entry.
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
    try:
        topics = await _RequestedTopics.authorize(backend, request.caller, body.topics)
        asked = replace(body, topics=topics.authorized)
        refusal = await backend.refusal(OFFSET_FETCH, body.group_id, asked, request.caller)
        if refusal is not None:
            return error_response(OFFSET_FETCH, body, request.version, refusal)
        response = await backend.read(
            OFFSET_FETCH, request.version, body.group_id, asked, request.caller, *offset_bytes(topics.authorized)
        )
        if response.error_code != Error.NONE:
            return error_response(OFFSET_FETCH, body, request.version, error_of(response.error_code))
        return OffsetFetchResponse(topics=await topics.complete(response.topics))
    except CoordinatorNotAvailable:
        return error_response(OFFSET_FETCH, body, request.version, Error.COORDINATOR_LOAD_IN_PROGRESS)


async def fetch_each(
    backend: GroupBackend,
    caller: Caller,
    groups: Sequence[GroupToFetch],
    fetch: Callable[[GroupToFetch], Awaitable[FetchedGroup]],
) -> list[FetchedGroup]:
    """The results of ``fetch`` for a request's groups, each once, in order; an error for those beyond the bounds."""
    # Lists have no hash: equal entries are found by their bytes.
    keys = await backend.lists.make_each(caller, groups[:MAX_GROUPS], msgspec.msgpack.encode)
    by_key = dict(zip(keys, groups[:MAX_GROUPS], strict=True))
    fetched = await backend.ask_each(OFFSET_FETCH, caller, by_key, lambda key: fetch(by_key[key]))
    results = [fetched.get(key) for key in by_key]
    answered = [*by_key.values(), *groups[MAX_GROUPS:]]

    def entry(position: int) -> FetchedGroup:
        found = results[position] if position < len(results) else None
        return found or FetchedGroup(answered[position].group_id, [], Error.COORDINATOR_LOAD_IN_PROGRESS)

    return made_lazily(range(len(answered)), entry)


async def fetch_group(
    backend: GroupBackend, request: ClientRequest, group: GroupToFetch, *, require_stable: bool
) -> FetchedGroup:
    """Fetch the offsets of one group of a request of v8+."""
    if not await backend.authorizer.allows(request.caller, Operation.DESCRIBE, group.group_id):
        return FetchedGroup(group.group_id, [], Error.GROUP_AUTHORIZATION_FAILED)
    if entry_count(group.topics, "partition_indexes") > MAX_ENTRIES:
        return FetchedGroup(group.group_id, [], Error.INVALID_REQUEST)
    try:
        topics = await _RequestedTopics.authorize(backend, request.caller, group.topics)
        body = OffsetFetchRequest(groups=[replace(group, topics=topics.authorized)], require_stable=require_stable)
        refusal = await backend.refusal(OFFSET_FETCH, group.group_id, body, request.caller)
        if refusal is not None:
            return FetchedGroup(group.group_id, [], refusal)
        response = await backend.read(
            OFFSET_FETCH, request.version, group.group_id, body, request.caller, *offset_bytes(topics.authorized)
        )
        (fetched,) = response.groups
        if fetched.error_code != Error.NONE:
            return fetched
        return replace(fetched, topics=await topics.complete(fetched.topics))
    except CoordinatorNotAvailable:
        return FetchedGroup(group.group_id, [], Error.COORDINATOR_LOAD_IN_PROGRESS)


def offset_bytes(named: Sequence[TopicToFetch] | None) -> tuple[int | None, int]:
    """The most bytes of the answer for topics that a request names, and those of what it names again.

    None if it asks for all that the group has.
    """
    names: set[str] = set()
    repeated = 0
    for topic in named or ():
        new = 0 if topic.name in names else len(set(topic.partition_indexes))
        repeated += len(topic.partition_indexes) - new
        names.add(topic.name)
    most = None if named is None else MOST_OFFSET_BYTES * entry_count(named, "partition_indexes")
    return most, MOST_OFFSET_BYTES * repeated


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
        """Look the topics up, and give those that a client names by name their ids.

        A topic that was just created again is not found under its name only: the offsets of its namesake are not its
        own. One that is not found keeps its offsets, since the brokers may not have heard of it yet.
        """
        if topics is None:
            return cls(backend, caller, None, [])
        accesses = await backend.authorizer.topics(caller, [topic.name for topic in topics], RENEWAL_SECONDS)
        return cls(
            backend,
            caller,
            [
                replace(topic, topic_id=topic.topic_id or accesses[topic.name].topic_id)
                for topic in topics
                if accesses[topic.name].may_describe
            ],
            [topic for topic in topics if not accesses[topic.name].may_describe],
        )

    async def complete(self, fetched: list[FetchedTopic]) -> list[FetchedTopic]:
        """Add TOPIC_AUTHORIZATION_FAILED for named topics; where all were requested, drop what the caller may not see.

        That is also what a broker would have deleted with its topic.
        """
        if self.authorized is None:
            return await existing_topics(self.backend, self.caller, fetched)
        return [*fetched, *(failed_fetch(topic, Error.TOPIC_AUTHORIZATION_FAILED) for topic in self.unauthorized)]


async def existing_topics(backend: GroupBackend, caller: Caller, fetched: list[FetchedTopic]) -> list[FetchedTopic]:
    """The topics that exist and that the caller may describe, each once and with its id.

    Raises :class:`CoordinatorNotAvailable`.
    """
    names = dict.fromkeys(topic.name for topic in fetched)
    accesses = await backend.authorizer.topics(caller, names, RENEWAL_SECONDS)
    found: dict[str, FetchedTopic] = {}
    for topic in fetched:
        access = accesses[topic.name]
        if not access.partitions or (topic.topic_id and access.topic_id and topic.topic_id != access.topic_id):
            continue
        known = found.get(topic.name)
        partitions = topic.partitions if known is None else [*known.partitions, *topic.partitions]
        found[topic.name] = replace(topic, partitions=partitions, topic_id=access.topic_id)
    return list(found.values())
