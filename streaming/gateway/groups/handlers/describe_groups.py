"""DescribeGroups: one request event for each group."""

from msgspec.structs import replace

from coordinator_logic.apis import DESCRIBE_GROUPS
from coordinator_logic.embedded_protocols import CONSUMER_PROTOCOL_TYPE, ConsumerProtocolError, decode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.messages import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import ClientRequest

__all__ = ["describe_groups", "topics_of_classic_members"]


async def describe_groups(backend: GroupBackend, request: ClientRequest) -> DescribeGroupsResponse:
    """Describe groups, in the request's order. The caller needs DESCRIBE on each of them.

    Groups beyond :data:`MAX_GROUPS` are answered COORDINATOR_LOAD_IN_PROGRESS: admin clients ask for them again.
    """
    body: DescribeGroupsRequest = request.payload

    async def describe(group_id: str) -> DescribedGroup:
        return await _describe(backend, request, group_id, with_operations=body.include_authorized_operations)

    caller = request.caller
    described = await backend.ask_in_order(DESCRIBE_GROUPS, caller, body.groups, describe, DescribedGroup)
    return DescribeGroupsResponse(described)


async def _describe(
    backend: GroupBackend, request: ClientRequest, group_id: str, *, with_operations: bool
) -> DescribedGroup:
    caller = request.caller
    if not await backend.authorizer.allows(caller, Operation.DESCRIBE, group_id):
        return DescribedGroup(group_id, Error.GROUP_AUTHORIZATION_FAILED)
    body = DescribeGroupsRequest([group_id])
    response = await backend.request(DESCRIBE_GROUPS, request.version, group_id, body, caller)
    (described,) = response.groups
    if with_operations and described.error_code == Error.NONE:
        operations = await backend.authorizer.operations_on_group(caller, group_id)
        return replace(described, authorized_operations=operations)
    return described


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
    (described,) = (await backend.request(api, api.max_version, group_id, body, backend.caller)).groups
    topics: set[str] = set()
    for member in described.members:
        try:
            topics.update(decode_subscription(member.member_metadata).topics)
        except ConsumerProtocolError:
            continue
    return topics
