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
from streaming.gateway.groups.timeout_policies import GroupTimeouts, TimeoutPolicy, default_policy
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import ClientRequest

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
    if isinstance(body, LeaveGroupRequest):
        return await backend.request(api, request.version, body.group_id, body, request.caller)
    if api is JOIN_GROUP:
        # The others are of members, whose group is here.
        refusal = await backend.refusal(api, body.group_id, body, request.caller)
        if refusal is not None:
            return error_response(api, body, request.version, refusal)
    member = body.group_instance_id or body.member_id
    return await backend.member_request(api, request.version, body.group_id, body, request.caller, member)


async def join_group(backend: GroupBackend, request: ClientRequest) -> JoinGroupResponse:
    """Forward a JoinGroup, see :func:`member_request`.

    The member may join a group of a type that has to be told of the topics that the member names.
    """
    response = await member_request(backend, JOIN_GROUP, request)
    group_id = request.payload.group_id
    if response.error_code == Error.NONE and _learns_topics(backend, group_id):
        backend.watched.watch(group_id, time.monotonic()).needs_lookup = True
    return response


def _learns_topics(backend: GroupBackend, group_id: str) -> bool:
    of_type = backend.type_of(group_id)
    return backend.watched.get(group_id) is not None or (of_type is not None and of_type.look_up is not None)


def join_policy(timeouts: GroupTimeouts, body: Message | None = None) -> TimeoutPolicy:
    """A JoinGroup waits as long as its client does.

    Clients pause, then join again with the member id that they have. A join without an id leaves an unused member
    behind each time it is repeated, hence the long wait.
    """
    policy = default_policy(timeouts)
    if not isinstance(body, JoinGroupRequest):
        return policy
    rebalance_seconds = max(body.rebalance_timeout_ms, body.session_timeout_ms) / 1000
    seconds = max(policy.seconds, rebalance_seconds + timeouts.join_margin_seconds)
    return policy._replace(seconds=min(seconds, timeouts.max_join_seconds))


def sync_policy(timeouts: GroupTimeouts, _body: Message | None = None) -> TimeoutPolicy:
    """COORDINATOR_LOAD_IN_PROGRESS is fatal to the Java client here.

    A broker that loads the group answers REBALANCE_IN_PROGRESS: the client joins again with its id, without looking up
    the coordinator.
    """
    return default_policy(timeouts)._replace(
        unanswered=Error.REBALANCE_IN_PROGRESS, unsent=Error.COORDINATOR_NOT_AVAILABLE
    )


def leave_policy(timeouts: GroupTimeouts, _body: Message | None = None) -> TimeoutPolicy:
    """A client that leaves closes next, whatever the response; Java's admin client retries."""
    return default_policy(timeouts)._replace(seconds=timeouts.leave_seconds)
