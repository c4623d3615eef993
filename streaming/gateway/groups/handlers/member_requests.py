"""JoinGroup, SyncGroup and LeaveGroup: one request event each."""

import time
from collections.abc import Sequence
from typing import TypeVar

from coordinator_logic.apis import JOIN_GROUP, Api
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    Message,
    SyncGroupRequest,
)
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.error_responses import error_response
from streaming.gateway.groups.list_requests import MAX_ENTRIES
from streaming.gateway.groups.subscriptions.lookups import CONSUMER
from streaming.gateway.groups.watched_groups import WatchedGroups
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import ClientRequest

__all__ = ["join_group", "member_request"]

RequestT = TypeVar("RequestT", JoinGroupRequest, SyncGroupRequest, LeaveGroupRequest)
ResponseT = TypeVar("ResponseT", bound=Message)


def _entries(body: JoinGroupRequest | SyncGroupRequest | LeaveGroupRequest) -> Sequence[object]:
    match body:
        case JoinGroupRequest():
            return body.protocols
        case SyncGroupRequest():
            return body.assignments
        case LeaveGroupRequest():
            return body.members or ()


async def member_request(backend: GroupBackend, api: Api[RequestT, ResponseT], request: ClientRequest) -> ResponseT:
    """Forward a member's request to the coordinator. The caller needs READ on the group."""
    body: RequestT = request.payload
    if not await backend.authorizer.allows(request.caller, Operation.READ, body.group_id):
        return error_response(api, body, request.version, Error.GROUP_AUTHORIZATION_FAILED)
    if len(_entries(body)) > MAX_ENTRIES:
        return error_response(api, body, request.version, Error.INVALID_REQUEST)
    return await backend.request(api, request.version, body.group_id, body, request.caller)


async def join_group(backend: GroupBackend, watched: WatchedGroups, request: ClientRequest) -> JoinGroupResponse:
    """Forward a JoinGroup, see :func:`member_request`.

    The member may join a group of the newer protocol, which then has to be told of the topics that the member names.
    """
    response = await member_request(backend, JOIN_GROUP, request)
    group_id = request.payload.group_id
    if response.error_code == Error.NONE and _is_consumer_group(backend, watched, group_id):
        watched.watch(group_id, time.monotonic()).needs_lookup = True
    return response


def _is_consumer_group(backend: GroupBackend, watched: WatchedGroups, group_id: str) -> bool:
    entry = backend.directory.entry(group_id)
    return watched.get(group_id) is not None or (entry is not None and entry.group_type == CONSUMER)
