"""DescribeGroups, DeleteGroups and ListGroups: about many groups at once, where an event reaches one."""

import asyncio

from msgspec.structs import replace

from coordinator_logic.errors import Error
from coordinator_logic.handlers import APIS
from coordinator_logic.handlers.list_groups import list_groups as listed
from coordinator_logic.messages import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ResponseBody,
)
from streaming.gateway.backend import GroupBackend, ask
from streaming.gateway.errors import LOADING
from streaming.gateway.permissions import Operation
from streaming.gateway.projection import from_wire
from streaming.gateway.request import ClientRequest

__all__ = ["delete_groups", "describe_groups", "list_groups"]


async def describe_groups(backend: GroupBackend, request: ClientRequest) -> ResponseBody:
    """Describe groups, in the request's order: each is allowed to whoever may describe it."""
    body = from_wire(request.payload, DescribeGroupsRequest)
    described = await asyncio.gather(
        *(
            _describe(backend, request, group_id, with_operations=body.include_authorized_operations)
            for group_id in body.groups
        )
    )
    return DescribeGroupsResponse(described)


async def _describe(
    backend: GroupBackend, request: ClientRequest, group_id: str, *, with_operations: bool
) -> DescribedGroup:
    caller = request.caller
    if not await backend.authorizer.allows(caller, Operation.DESCRIBE, group_id):
        return DescribedGroup(group_id, Error.GROUP_AUTHORIZATION_FAILED)
    body = DescribeGroupsRequest([group_id])
    answer = await ask(backend.channel, APIS["DescribeGroups"], request.version, group_id, body, caller)
    assert isinstance(answer, DescribeGroupsResponse)
    (described,) = answer.groups
    if with_operations and described.error_code == Error.NONE:
        operations = await backend.authorizer.operations_on_group(caller, group_id)
        return replace(described, authorized_operations=operations)
    return described


async def delete_groups(backend: GroupBackend, request: ClientRequest) -> ResponseBody:
    """Delete groups, each once: each is allowed to whoever may delete it."""
    body = from_wire(request.payload, DeleteGroupsRequest)
    results = await asyncio.gather(
        *(_delete(backend, request, group_id) for group_id in dict.fromkeys(body.groups_names))
    )
    return DeleteGroupsResponse(results)


async def _delete(backend: GroupBackend, request: ClientRequest, group_id: str) -> DeletedGroup:
    if not await backend.authorizer.allows(request.caller, Operation.DELETE, group_id):
        return DeletedGroup(group_id, Error.GROUP_AUTHORIZATION_FAILED)
    body = DeleteGroupsRequest([group_id])
    answer = await ask(backend.channel, APIS["DeleteGroups"], request.version, group_id, body, request.caller)
    assert isinstance(answer, DeleteGroupsResponse)
    (result,) = answer.results
    return result


async def list_groups(backend: GroupBackend, request: ClientRequest) -> ResponseBody:
    """The groups whose coordinator is the broker that was asked.

    All of them to whoever may describe the cluster, else those that the caller may describe.
    """
    if not backend.directory.is_complete:
        return ListGroupsResponse(error_code=LOADING)
    body = from_wire(request.payload, ListGroupsRequest)
    entries = [
        entry for entry in backend.directory.entries() if backend.is_coordinator(entry.group_id, request.node_id)
    ]
    visible = await backend.authorizer.describable(request.caller, [entry.group_id for entry in entries])
    return listed((entry for entry, is_visible in zip(entries, visible, strict=True) if is_visible), body)
