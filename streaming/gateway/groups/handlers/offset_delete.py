"""OffsetDelete."""

from msgspec.structs import replace

from coordinator_logic.apis import OFFSET_DELETE, OFFSET_FETCH
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    DeletedPartition,
    DeletedTopic,
    GroupToFetch,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    PartitionToDelete,
    TopicToDelete,
    TopicToFetch,
)
from streaming.client.errors import CoordinatorNotAvailable
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.error_responses import error_response
from streaming.gateway.groups.handlers.offset_fetch import offset_bytes
from streaming.gateway.groups.handlers.topic_check import CheckedTopics, check_topics
from streaming.gateway.groups.list_requests import MAX_ENTRIES, entry_count
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import Caller, ClientRequest


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
        topics = await _with_stored(backend, caller, body.group_id, topics)
    except CoordinatorNotAvailable:
        return error_response(OFFSET_DELETE, body, request.version, Error.COORDINATOR_LOAD_IN_PROGRESS)
    # The event is sent even without accepted topics: the response says at its top level whether the group exists.
    deletion = replace(body, topics=topics.accepted)
    response = await backend.first_request(OFFSET_DELETE, request.version, body.group_id, deletion, caller)
    if response.error_code != Error.NONE:
        return response
    return OffsetDeleteResponse(topics=topics.merge(response.topics))


async def _with_stored(backend: GroupBackend, caller: Caller, group_id: str, topics: CheckedTopics) -> CheckedTopics:
    """Accept also unknown partitions of which the group has an offset: those of a topic that is gone, for example.

    A broker deletes such an offset with the topic. Here nobody could, until the group has heard of the deletion.
    Raises :class:`CoordinatorNotAvailable` if the coordinator does not say which offsets the group has.
    """
    unknown = [
        TopicToFetch(topic.name, [each.partition_index for each in topic.partitions])
        for topic in topics.rejected
        if all(each.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION for each in topic.partitions)
    ]
    if not unknown:
        return topics
    asked = OffsetFetchRequest(groups=[GroupToFetch(group_id, unknown)])
    version = OFFSET_FETCH.max_version
    response = await backend.read(OFFSET_FETCH, version, group_id, asked, caller, *offset_bytes(unknown))
    (fetched,) = response.groups
    if Error(fetched.error_code).retriable:
        raise CoordinatorNotAvailable(f"the offsets of group {group_id!r} were not answered in time")
    stored = {
        (topic.name, each.partition_index): each.committed_offset >= 0
        for topic in fetched.topics
        for each in topic.partitions
    }
    accepted, rejected = list(topics.accepted), []
    for topic in topics.rejected:
        known = [each.partition_index for each in topic.partitions if stored.get((topic.name, each.partition_index))]
        left = [each for each in topic.partitions if each.partition_index not in known]
        if known:
            accepted.append(TopicToDelete(topic.name, [PartitionToDelete(index) for index in known]))
        if left:
            rejected.append(replace(topic, partitions=left))
    return CheckedTopics(accepted, rejected)
