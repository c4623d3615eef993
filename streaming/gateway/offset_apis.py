"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete.

Like a broker, the gateway looks at the topics before the coordinator is asked: what the caller may not read, and what
does not exist, is answered here, and only the rest becomes an event.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

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
from streaming.gateway.acls import Operation, Resource
from streaming.gateway.backend import GroupBackend, ask
from streaming.gateway.errors import LOADING, refusal
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
    if not backend.authorizer.allows(caller, Operation.READ, Resource.GROUP, body.group_id):
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
    if not authorizer.allows(caller, Operation.WRITE, Resource.TRANSACTIONAL_ID, body.transactional_id):
        return refusal(TXN_COMMIT, body, request.version, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not authorizer.allows(caller, Operation.READ, Resource.GROUP, body.group_id):
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
    if not backend.authorizer.allows(caller, Operation.DELETE, Resource.GROUP, body.group_id):
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
    readable = _allowed(backend, caller, Operation.READ, (topic.name for topic in topics))
    counts = await backend.topics.partition_counts(readable)
    taken, refused = [], []
    for topic in topics:
        count = counts.get(topic.name, 0)
        error = Error.UNKNOWN_TOPIC_OR_PARTITION if topic.name in readable else Error.TOPIC_AUTHORIZATION_FAILED
        existing = [partition for partition in topic.partitions if 0 <= partition.partition_index < count]
        missing = [partition for partition in topic.partitions if not 0 <= partition.partition_index < count]
        if existing:
            taken.append(replace(topic, partitions=existing))
        if missing:
            answers = [answered_partition(partition.partition_index, error) for partition in missing]
            refused.append(answered_topic(topic.name, answers))
    return taken, refused


def _allowed(backend: GroupBackend, caller: Caller, operation: Operation, topics: Iterable[str]) -> set[str]:
    return {name for name in topics if backend.authorizer.allows(caller, operation, Resource.TOPIC, name)}


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
    if not backend.authorizer.allows(request.caller, Operation.DESCRIBE, Resource.GROUP, body.group_id):
        return refusal(FETCH, body, request.version, Error.GROUP_AUTHORIZATION_FAILED)
    allowed = _describable(backend, request.caller, body.topics)
    answer = await ask(
        backend.channel, FETCH, request.version, body.group_id, replace(body, topics=allowed), request.caller
    )
    assert isinstance(answer, OffsetFetchResponse)
    if answer.error_code != Error.NONE:
        return refusal(FETCH, body, request.version, error_of(answer.error_code))
    return OffsetFetchResponse(topics=_with_hidden(backend, request.caller, body.topics, answer.topics))


async def _fetch_group(
    backend: GroupBackend, request: ClientRequest, group: GroupToFetch, *, require_stable: bool
) -> FetchedGroup:
    caller = request.caller
    if not backend.authorizer.allows(caller, Operation.DESCRIBE, Resource.GROUP, group.group_id):
        return FetchedGroup(group.group_id, [], Error.GROUP_AUTHORIZATION_FAILED)
    allowed = replace(group, topics=_describable(backend, caller, group.topics))
    body = OffsetFetchRequest(groups=[allowed], require_stable=require_stable)
    answer = await ask(backend.channel, FETCH, request.version, group.group_id, body, caller)
    assert isinstance(answer, OffsetFetchResponse)
    (fetched,) = answer.groups
    if fetched.error_code != Error.NONE:
        return fetched
    return replace(fetched, topics=_with_hidden(backend, caller, group.topics, fetched.topics))


def _describable(
    backend: GroupBackend, caller: Caller, topics: Sequence[TopicToFetch] | None
) -> list[TopicToFetch] | None:
    if topics is None:
        return None
    allowed = _allowed(backend, caller, Operation.DESCRIBE, (topic.name for topic in topics))
    return [topic for topic in topics if topic.name in allowed]


def _with_hidden(
    backend: GroupBackend, caller: Caller, asked: Sequence[TopicToFetch] | None, fetched: list[FetchedTopic]
) -> list[FetchedTopic]:
    """The answer with an error for each topic that the caller named and may not describe; of all, without them."""
    if asked is None:
        allowed = _allowed(backend, caller, Operation.DESCRIBE, (topic.name for topic in fetched))
        return [topic for topic in fetched if topic.name in allowed]
    allowed = _allowed(backend, caller, Operation.DESCRIBE, (topic.name for topic in asked))
    error = Error.TOPIC_AUTHORIZATION_FAILED
    hidden = [
        FetchedTopic(topic.name, [FetchedPartition(index, error_code=error) for index in topic.partition_indexes])
        for topic in asked
        if topic.name not in allowed
    ]
    return [*fetched, *hidden]
