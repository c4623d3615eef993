"""ConsumerGroupDescribe (KIP-848): one request event for each group."""

from coordinator_logic.apis import CONSUMER_GROUP_DESCRIBE
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from streaming.client.errors import CoordinatorNotAvailable
from streaming.gateway.groups.backend import FoundGroup, GroupBackend
from streaming.gateway.groups.handlers.describe_groups import describe_each
from streaming.gateway.groups.watched_groups import Subscription
from streaming.gateway.wire.client_request import ClientRequest

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."
"""Kafka's message."""


async def consumer_group_describe(backend: GroupBackend, request: ClientRequest) -> ConsumerGroupDescribeResponse:
    """Describe consumer groups, see :func:`describe_each`. The caller needs DESCRIBE on the topics of a group too."""
    body: ConsumerGroupDescribeRequest = request.payload

    async def checked(described: DescribedConsumerGroup) -> DescribedConsumerGroup:
        topics = _assigned_topics(described).keys()
        try:
            visible = await backend.authorizer.describable_topics(request.caller, topics)
        except CoordinatorNotAvailable:
            return DescribedConsumerGroup(described.group_id, Error.COORDINATOR_LOAD_IN_PROGRESS)
        if len(visible) < len(topics):
            return DescribedConsumerGroup(described.group_id, Error.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS)
        return described

    api, described_type = CONSUMER_GROUP_DESCRIBE, DescribedConsumerGroup
    described = await describe_each(backend, request, api, body.group_ids, described_type, checked)
    return ConsumerGroupDescribeResponse(described)


async def look_up_consumer_group(backend: GroupBackend, group_id: str) -> FoundGroup | Error:
    """The subscriptions and the assigned topics of a consumer group, see :class:`GroupType`."""
    body = ConsumerGroupDescribeRequest([group_id])
    api = CONSUMER_GROUP_DESCRIBE
    (described,) = (await backend.read(api, api.max_version, group_id, body, backend.caller)).groups
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
