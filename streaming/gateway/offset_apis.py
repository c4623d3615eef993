"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete.

Like a broker, the gateway looks at the topics before the coordinator is asked: what the caller may not read, and what
does not exist, is answered here, and only the rest becomes an event.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeVar

from msgspec.structs import replace

from coordinator_logic.errors import Error
from coordinator_logic.handlers import APIS
from coordinator_logic.messages import (
    CommittedPartition,
    CommittedTopic,
    DeletedPartition,
    DeletedTopic,
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    GroupToFetch,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ResponseBody,
    TopicToFetch,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from streaming.client.errors import CoordinatorNotAvailable, error_of
from streaming.gateway.backend import GroupBackend, ask
from streaming.gateway.errors import LOADING, refusal
from streaming.gateway.permissions import Operation
from streaming.gateway.projection import from_wire
from streaming.gateway.request import Caller, ClientRequest

__all__ = ["offset_commit", "offset_delete", "offset_fetch", "txn_offset_commit"]

COMMIT, TXN_COMMIT = APIS["OffsetCommit"], APIS["TxnOffsetCommit"]
FETCH, DELETE = APIS["OffsetFetch"], APIS["OffsetDelete"]
FIRST_FETCH_VERSION_WITH_GROUPS = 8


TopicT = TypeVar("TopicT", bound=Any)
AnsweredT = TypeVar("AnsweredT", bound=CommittedTopic | DeletedTopic)


# --------------------------------------------------------------------------------------------------------------
# Commits


async def offset_commit(backend: GroupBackend, request: ClientRequest) -> ResponseBody:
    """Commit: allowed to whoever may read the group, of topics that it may read."""
    body = from_wire(request.payload, OffsetCommitRequest)
    caller = request.caller
    if not await backend.authorizer.allows(caller, Operation.READ, body.group_id):
        return refusal(COMMIT, body, request.version, Error.GROUP_AUTHORIZATION_FAILED)
    try:
        taken, refused = await _sift(backend, caller, body.topics, CommittedTopic, CommittedPartition)
    except CoordinatorNotAvailable:
        return refusal(COMMIT, body, request.version, LOADING)
    if not taken:
        return OffsetCommitResponse(_merged(refused, ()))
    answer = await ask(backend.channel, COMMIT, request.version, body.group_id, replace(body, topics=taken), caller)
    assert isinstance(answer, OffsetCommitResponse)
    return OffsetCommitResponse(_merged(refused, answer.topics))


async def txn_offset_commit(backend: GroupBackend, request: ClientRequest) -> ResponseBody:
    """Commit in a transaction: allowed to whoever may also write with the transactional id."""
    body = from_wire(request.payload, TxnOffsetCommitRequest)
    caller, authorizer = request.caller, backend.authorizer
    if not await authorizer.allows_transaction(caller, body.transactional_id, body.group_id):
        return refusal(TXN_COMMIT, body, request.version, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not await authorizer.allows(caller, Operation.READ, body.group_id):
        return refusal(TXN_COMMIT, body, request.version, Error.GROUP_AUTHORIZATION_FAILED)
    try:
        taken, refused = await _sift(backend, caller, body.topics, CommittedTopic, CommittedPartition)
    except CoordinatorNotAvailable:
        return refusal(TXN_COMMIT, body, request.version, LOADING)
    if not taken:
        return TxnOffsetCommitResponse(_merged(refused, ()))
    answer = await ask(backend.channel, TXN_COMMIT, request.version, body.group_id, replace(body, topics=taken), caller)
    assert isinstance(answer, TxnOffsetCommitResponse)
    return TxnOffsetCommitResponse(_merged(refused, answer.topics))


async def offset_delete(backend: GroupBackend, request: ClientRequest) -> ResponseBody:
    """Forget offsets: allowed to whoever may delete the group, of topics that it may read."""
    body = from_wire(request.payload, OffsetDeleteRequest)
    caller = request.caller
    if not await backend.authorizer.allows(caller, Operation.DELETE, body.group_id):
        return refusal(DELETE, body, request.version, Error.GROUP_AUTHORIZATION_FAILED)
    try:
        taken, refused = await _sift(backend, caller, body.topics, DeletedTopic, DeletedPartition)
    except CoordinatorNotAvailable:
        return refusal(DELETE, body, request.version, LOADING)
    # Asked even for nothing: whether there is such a group is said at the top.
    answer = await ask(backend.channel, DELETE, request.version, body.group_id, replace(body, topics=taken), caller)
    assert isinstance(answer, OffsetDeleteResponse)
    if answer.error_code != Error.NONE:
        return answer
    return OffsetDeleteResponse(topics=_merged(refused, answer.topics))


async def _sift(
    backend: GroupBackend, caller: Caller, topics: Sequence[TopicT], answered_topic: Any, answered_partition: Any
) -> tuple[list[TopicT], list[Any]]:
    """What the coordinator is to be asked about, and the answers for the rest, both in the request's order.

    Raises :class:`CoordinatorNotAvailable` when it cannot be told which topics there are.
    """
    seen = await backend.authorizer.topics(caller, (topic.name for topic in topics))
    taken, refused = [], []
    for topic in topics:
        access = seen[topic.name]
        count = access.partitions if access.may_read else 0
        error = Error.UNKNOWN_TOPIC_OR_PARTITION if access.may_read else Error.TOPIC_AUTHORIZATION_FAILED
        existing = [partition for partition in topic.partitions if 0 <= partition.partition_index < count]
        missing = [partition for partition in topic.partitions if not 0 <= partition.partition_index < count]
        if existing:
            taken.append(replace(topic, partitions=existing))
        if missing:
            answers = [answered_partition(partition.partition_index, error) for partition in missing]
            refused.append(answered_topic(topic.name, answers))
    return taken, refused


def _merged(refused: Sequence[AnsweredT], answered: Sequence[AnsweredT]) -> list[AnsweredT]:
    """As a broker puts them together: each topic once, what it refused before what its coordinator answered."""
    by_name: dict[str, AnsweredT] = {}
    for topic in (*refused, *answered):
        if topic.name in by_name:
            before = by_name[topic.name].partitions
            topic = replace(topic, partitions=[*before, *topic.partitions])  # noqa: PLW2901
        by_name[topic.name] = topic
    return list(by_name.values())


# --------------------------------------------------------------------------------------------------------------
# OffsetFetch


async def offset_fetch(backend: GroupBackend, request: ClientRequest) -> ResponseBody:
    """Committed offsets: allowed to whoever may describe the group, of topics that it may describe.

    v8+ names several groups; each is asked for by an event of its own, all at once.
    """
    body = from_wire(request.payload, OffsetFetchRequest)
    if request.version >= FIRST_FETCH_VERSION_WITH_GROUPS:
        fetched = await asyncio.gather(
            *(_fetch_group(backend, request, group, require_stable=body.require_stable) for group in body.groups)
        )
        return OffsetFetchResponse(groups=fetched)
    if not await backend.authorizer.allows(request.caller, Operation.DESCRIBE, body.group_id):
        return refusal(FETCH, body, request.version, Error.GROUP_AUTHORIZATION_FAILED)
    sight = await _Sight.of(backend, request.caller, body.topics)
    asked = replace(body, topics=sight.visible)
    answer = await ask(backend.channel, FETCH, request.version, body.group_id, asked, request.caller)
    assert isinstance(answer, OffsetFetchResponse)
    if answer.error_code != Error.NONE:
        return refusal(FETCH, body, request.version, error_of(answer.error_code))
    return OffsetFetchResponse(topics=await sight.complete(answer.topics))


async def _fetch_group(
    backend: GroupBackend, request: ClientRequest, group: GroupToFetch, *, require_stable: bool
) -> FetchedGroup:
    if not await backend.authorizer.allows(request.caller, Operation.DESCRIBE, group.group_id):
        return FetchedGroup(group.group_id, [], Error.GROUP_AUTHORIZATION_FAILED)
    sight = await _Sight.of(backend, request.caller, group.topics)
    body = OffsetFetchRequest(groups=[replace(group, topics=sight.visible)], require_stable=require_stable)
    answer = await ask(backend.channel, FETCH, request.version, group.group_id, body, request.caller)
    assert isinstance(answer, OffsetFetchResponse)
    (fetched,) = answer.groups
    if fetched.error_code != Error.NONE:
        return fetched
    return replace(fetched, topics=await sight.complete(fetched.topics))


class _Sight(NamedTuple):
    """Of the topics that a client asks about (None: all), those that it may see, and those that it may not."""

    backend: GroupBackend
    caller: Caller
    visible: list[TopicToFetch] | None
    hidden: list[TopicToFetch]

    @classmethod
    async def of(cls, backend: GroupBackend, caller: Caller, topics: Sequence[TopicToFetch] | None) -> Self:
        if topics is None:
            return cls(backend, caller, None, [])
        described = await backend.authorizer.describable_topics(caller, [topic.name for topic in topics])
        return cls(
            backend,
            caller,
            [topic for topic in topics if topic.name in described],
            [topic for topic in topics if topic.name not in described],
        )

    async def complete(self, fetched: list[FetchedTopic]) -> list[FetchedTopic]:
        """The answer with an error for each topic that was hidden; where all were asked for, without them."""
        if self.visible is None:
            names = [topic.name for topic in fetched]
            described = await self.backend.authorizer.describable_topics(self.caller, names)
            return [topic for topic in fetched if topic.name in described]
        error = Error.TOPIC_AUTHORIZATION_FAILED
        refused = (
            FetchedTopic(topic.name, [FetchedPartition(index, error_code=error) for index in topic.partition_indexes])
            for topic in self.hidden
        )
        return [*fetched, *refused]
