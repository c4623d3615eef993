"""DescribeGroups: one request event for each group."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from coordinator_logic.apis import DESCRIBE_GROUPS, Api
from coordinator_logic.embedded_protocols import CONSUMER_PROTOCOL_TYPE, ConsumerProtocolError, decode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    DescribedConsumerGroup,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.list_requests import made_lazily
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import ClientRequest

DescribedT = TypeVar("DescribedT", DescribedGroup, DescribedConsumerGroup)


async def describe_groups(backend: GroupBackend, request: ClientRequest) -> DescribeGroupsResponse:
    """Describe groups, see :func:`describe_each`."""
    body: DescribeGroupsRequest = request.payload
    return DescribeGroupsResponse(await describe_each(backend, request, DESCRIBE_GROUPS, body.groups, DescribedGroup))


async def describe_each(
    backend: GroupBackend,
    request: ClientRequest,
    api: Api[Any, Any],
    group_ids: Sequence[str],
    described_type: type[DescribedT],
    checked: Callable[[DescribedT], Awaitable[DescribedT]] | None = None,
) -> list[DescribedT]:
    """Describe groups, each once, in the request's order. The caller needs DESCRIBE on each of them.

    Groups beyond :data:`MAX_GROUPS` are answered COORDINATOR_LOAD_IN_PROGRESS: admin clients ask for them again.

    checked: returns what the caller may see of a group.
    """
    caller = request.caller

    async def describe(group_id: str) -> DescribedT:
        if not await backend.authorizer.allows(caller, Operation.DESCRIBE, group_id):
            return described_type(group_id, Error.GROUP_AUTHORIZATION_FAILED)
        body = api.request_type([group_id])
        described: DescribedT
        (described,) = (await backend.read(api, request.version, group_id, body, caller)).groups
        if checked is not None and described.error_code == Error.NONE:
            described = await checked(described)
        if request.payload.include_authorized_operations and described.error_code == Error.NONE:
            operations = await backend.authorizer.operations_on_group(caller, group_id)
            return replace(described, authorized_operations=operations)
        return described

    found = await backend.ask_each(api, caller, group_ids, describe)

    def entry(group_id: str) -> DescribedT:
        return found.get(group_id) or described_type(group_id, Error.COORDINATOR_LOAD_IN_PROGRESS)

    return made_lazily(await backend.lists.different(caller, group_ids), entry)


async def topics_of_classic_members(backend: GroupBackend, group_id: str) -> set[str]:
    """The topics of a classic group's consumers, see :class:`GroupType`.

    None are known while the group rebalances: DescribeGroups shows the metadata of a Stable group's members only.
    """
    entry = backend.directory.entry(group_id)
    has_consumers = entry is not None and entry.protocol_type == CONSUMER_PROTOCOL_TYPE and entry.members > 0
    if backend.directory.is_complete and not has_consumers:
        return set()
    body = DescribeGroupsRequest([group_id])
    api = DESCRIBE_GROUPS
    (described,) = (await backend.read(api, api.max_version, group_id, body, backend.caller)).groups
    topics: set[str] = set()
    for member in described.members:
        try:
            topics.update(decode_subscription(member.member_metadata).topics)
        except ConsumerProtocolError:
            continue
    return topics
