"""ConsumerGroupDescribe (KIP-848): one request event for each group."""

from msgspec.structs import replace

from coordinator_logic.apis import CONSUMER_GROUP_DESCRIBE
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from streaming.client.errors import CoordinatorNotAvailable
from streaming.gateway.groups.backend import FoundGroup, GroupBackend
from streaming.gateway.groups.watched_groups import Subscription
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import Caller, ClientRequest

__all__ = ["consumer_group_describe", "look_up_consumer_group"]

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."
"""Kafka's message."""


async def consumer_group_describe(backend: GroupBackend, request: ClientRequest) -> ConsumerGroupDescribeResponse:
    """Describe consumer groups, in the request's order.

    The caller needs DESCRIBE on each of them, and on the topics that a group assigns. Groups beyond
    :data:`MAX_GROUPS` are answered COORDINATOR_LOAD_IN_PROGRESS: admin clients ask for them again.
    """
    body: ConsumerGroupDescribeRequest = request.payload

    async def describe(group_id: str) -> DescribedConsumerGroup:
        return await _describe(backend, request, group_id, with_operations=body.include_authorized_operations)

    api, caller = CONSUMER_GROUP_DESCRIBE, request.caller
    described = await backend.ask_in_order(api, caller, body.group_ids, describe, DescribedConsumerGroup)
    return ConsumerGroupDescribeResponse(described)


async def _describe(
    backend: GroupBackend, request: ClientRequest, group_id: str, *, with_operations: bool
) -> DescribedConsumerGroup:
    caller = request.caller
    if not await backend.authorizer.allows(caller, Operation.DESCRIBE, group_id):
        return DescribedConsumerGroup(group_id, Error.GROUP_AUTHORIZATION_FAILED)
    body = ConsumerGroupDescribeRequest([group_id])
    response = await backend.request(CONSUMER_GROUP_DESCRIBE, request.version, group_id, body, caller)
    (described,) = response.groups
    if described.error_code != Error.NONE:
        return described
    try:
        if not await _may_see(backend, caller, described):
            return DescribedConsumerGroup(group_id, Error.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS)
    except CoordinatorNotAvailable:
        return DescribedConsumerGroup(group_id, Error.COORDINATOR_LOAD_IN_PROGRESS)
    if with_operations:
        operations = await backend.authorizer.operations_on_group(caller, group_id)
        return replace(described, authorized_operations=operations)
    return described


async def _may_see(backend: GroupBackend, caller: Caller, described: DescribedConsumerGroup) -> bool:
    """Whether the caller may describe all topics that the group assigns."""
    topics = _assigned_topics(described).keys()
    return len(await backend.authorizer.describable_topics(caller, topics)) == len(topics)


async def look_up_consumer_group(backend: GroupBackend, group_id: str) -> FoundGroup | Error:
    """The subscriptions and the assigned topics of a consumer group, see :class:`GroupType`."""
    body = ConsumerGroupDescribeRequest([group_id])
    api = CONSUMER_GROUP_DESCRIBE
    (described,) = (await backend.request(api, api.max_version, group_id, body, backend.caller)).groups
    if described.error_code != Error.NONE:
        return Error(described.error_code)
    subscriptions = {
        member.member_id: Subscription(frozenset(member.subscribed_topic_names), member.subscribed_topic_regex or "")
        for member in described.members
    }
    return FoundGroup(subscriptions, _assigned_topics(described))


def _assigned_topics(described: DescribedConsumerGroup) -> dict[str, str]:
    """The ids of the topics that a group assigns, by name."""
    return {
        topic.topic_name: topic.topic_id
        for member in described.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
