"""Asks the coordinator for the subscriptions of a group's members."""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator_logic.apis import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS
from coordinator_logic.embedded_protocols import ConsumerProtocolError, decode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    ConsumerGroupDescribeRequest,
    DescribedConsumerGroup,
    DescribeGroupsRequest,
)
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.watched_groups import Subscription
from streaming.gateway.wire.client_request import Caller

__all__ = ["CONSUMER", "ConsumerGroupFound", "classic_subscriptions", "has_members", "look_up"]

CLASSIC, CONSUMER = "classic", "consumer"


class ConsumerGroupFound(NamedTuple):
    """The subscriptions of a consumer group's members, and the ids of the topics that it assigns, by name."""

    subscriptions: Mapping[str, Subscription]
    assigned: Mapping[str, str]


async def look_up(backend: GroupBackend, group_id: str, gateway: Caller) -> ConsumerGroupFound | Error:
    """Describe a consumer group; GROUP_ID_NOT_FOUND for any other, another error if the coordinator does not answer."""
    body = ConsumerGroupDescribeRequest([group_id])
    api = CONSUMER_GROUP_DESCRIBE
    (described,) = (await backend.request(api, api.max_version, group_id, body, gateway)).groups
    if described.error_code != Error.NONE:
        return Error(described.error_code)
    subscriptions = {
        member.member_id: Subscription(frozenset(member.subscribed_topic_names), member.subscribed_topic_regex or "")
        for member in described.members
    }
    return ConsumerGroupFound(subscriptions, _assigned_topics(described))


def _assigned_topics(described: DescribedConsumerGroup) -> dict[str, str]:
    return {
        topic.topic_name: topic.topic_id
        for member in described.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


def has_members(backend: GroupBackend, group_id: str) -> bool:
    """Whether a group has members as of the directory, which is as current as the last completed batch."""
    entry = backend.directory.entry(group_id)
    return entry is not None and entry.members > 0


def _is_classic_group_of_consumers(backend: GroupBackend, group_id: str) -> bool:
    entry = backend.directory.entry(group_id)
    is_classic = entry is not None and (entry.group_type, entry.protocol_type) == (CLASSIC, CONSUMER)
    return is_classic and has_members(backend, group_id)


async def classic_subscriptions(backend: GroupBackend, group_id: str, gateway: Caller) -> set[str]:
    """The topics of a classic group's members, which a member of the newer protocol that joins makes a consumer group.

    None are known while the group rebalances: DescribeGroups shows the metadata of a Stable group's members only.
    """
    if backend.directory.is_complete and not _is_classic_group_of_consumers(backend, group_id):
        return set()
    body = DescribeGroupsRequest([group_id])
    api = DESCRIBE_GROUPS
    (described,) = (await backend.request(api, api.max_version, group_id, body, gateway)).groups
    topics: set[str] = set()
    for member in described.members:
        try:
            topics.update(decode_subscription(member.member_metadata).topics)
        except ConsumerProtocolError:
            continue
    return topics
