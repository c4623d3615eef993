"""OffsetCommit and TxnOffsetCommit."""

from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from msgspec.structs import replace

from coordinator_logic.apis import OFFSET_COMMIT, TXN_OFFSET_COMMIT, Api
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from streaming.client.errors import CoordinatorNotAvailable
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.commit_order import AppendPermit
from streaming.gateway.groups.error_responses import failed_commit, txn_offset_commit_error
from streaming.gateway.groups.handlers.topic_check import check_topics
from streaming.gateway.groups.list_requests import MAX_ENTRIES, entry_count
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import ClientRequest

RequestT = TypeVar("RequestT", OffsetCommitRequest, TxnOffsetCommitRequest)
ResponseT = TypeVar("ResponseT", OffsetCommitResponse, TxnOffsetCommitResponse)


async def offset_commit(backend: GroupBackend, request: ClientRequest) -> OffsetCommitResponse:
    """Commit offsets. The caller needs READ on the group, and READ on each topic."""
    async with append_permit(backend, request) as permit:
        body: OffsetCommitRequest = request.payload
        return await commit(backend, request, OFFSET_COMMIT, body, permit)


async def txn_offset_commit(backend: GroupBackend, request: ClientRequest) -> TxnOffsetCommitResponse:
    """Commit offsets in a transaction. In addition, the caller needs WRITE on the transactional id."""
    async with append_permit(backend, request) as permit:
        body: TxnOffsetCommitRequest = request.payload
        if not await backend.authorizer.allows_transaction(request.caller, body.transactional_id):
            return _refuse(request, TXN_OFFSET_COMMIT, body, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return await commit(backend, request, TXN_OFFSET_COMMIT, body, permit)


def append_permit(backend: GroupBackend, request: ClientRequest) -> AbstractAsyncContextManager[AppendPermit]:
    """The permit of a request that commits, see :class:`CommitOrder`."""
    return backend.commit_order.permit(request.caller, request.payload.group_id)


async def commit(
    backend: GroupBackend, request: ClientRequest, api: Api[RequestT, ResponseT], body: RequestT, permit: AppendPermit
) -> ResponseT:
    """Append a commit, release its permit, and wait for the response."""
    if not await backend.authorizer.allows(request.caller, Operation.READ, body.group_id):
        return _refuse(request, api, body, Error.GROUP_AUTHORIZATION_FAILED)
    if entry_count(body.topics) > MAX_ENTRIES:
        return _refuse(request, api, body, Error.INVALID_REQUEST)
    try:
        topics = await check_topics(backend, request.caller, body.topics, CommittedTopic, CommittedPartition)
    except CoordinatorNotAvailable:
        return _refuse(request, api, body, Error.COORDINATOR_LOAD_IN_PROGRESS)
    if not topics.accepted:
        return api.response_type(topics.merge(()))
    commit = replace(body, topics=topics.accepted)
    refusal = await backend.refusal(api, body.group_id, commit, request.caller)
    if refusal is not None:
        return _refuse(request, api, body, refusal)
    event = backend.send(api, request.version, body.group_id, commit, request.caller)
    permit.release()
    answered = await backend.response(api, request.version, commit, event)
    return api.response_type(topics.merge(answered.topics))


def _refuse(request: ClientRequest, api: Api[RequestT, ResponseT], body: RequestT, error: Error) -> ResponseT:
    """The response with an error for every partition."""
    if isinstance(body, TxnOffsetCommitRequest):
        error = txn_offset_commit_error(request.version, error)
    return api.response_type([failed_commit(topic, error) for topic in body.topics])
