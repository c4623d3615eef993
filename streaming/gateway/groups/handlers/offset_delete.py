"""OffsetDelete."""

from msgspec.structs import replace

from coordinator_logic.apis import OFFSET_DELETE
from coordinator_logic.errors import Error
from coordinator_logic.messages import DeletedPartition, DeletedTopic, OffsetDeleteRequest, OffsetDeleteResponse
from streaming.client.errors import CoordinatorNotAvailable
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.error_responses import error_response
from streaming.gateway.groups.handlers.topic_check import check_topics
from streaming.gateway.groups.list_requests import MAX_ENTRIES, entry_count
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import ClientRequest


async def offset_delete(backend: GroupBackend, request: ClientRequest) -> OffsetDeleteResponse:
    """Delete committed offsets. The caller needs DELETE on the group, and READ on each topic."""
    body: OffsetDeleteRequest = request.payload
    caller = request.caller
    if not await backend.authorizer.allows(caller, Operation.DELETE, body.group_id):
        return error_response(OFFSET_DELETE, body, request.version, Error.GROUP_AUTHORIZATION_FAILED)
    if entry_count(body.topics) > MAX_ENTRIES:
        return error_response(OFFSET_DELETE, body, request.version, Error.INVALID_REQUEST)
    try:
        topics = await check_topics(backend, caller, body.topics, DeletedTopic, DeletedPartition)
    except CoordinatorNotAvailable:
        return error_response(OFFSET_DELETE, body, request.version, Error.COORDINATOR_LOAD_IN_PROGRESS)
    # The event is sent even without accepted topics: the response says at its top level whether the group exists.
    deletion = replace(body, topics=topics.accepted)
    response = await backend.request(OFFSET_DELETE, request.version, body.group_id, deletion, caller)
    if response.error_code != Error.NONE:
        return response
    return OffsetDeleteResponse(topics=topics.merge(response.topics))
