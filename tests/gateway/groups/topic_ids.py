"""Requests for offsets by the ids of topics instead of their names."""

from collections.abc import Mapping

from coordinator_logic import messages
from coordinator_logic.messages import Message
from streaming.gateway.groups.handlers.topic_id_messages import (
    GroupOfIdsToFetch,
    OffsetCommitRequest,
    OffsetFetchRequest,
    TopicIdToCommit,
    TopicIdToFetch,
)
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.wire.topic_ids import OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS

__all__ = ["ids_of", "in_version"]

UNKNOWN = "AAAAAAAAAAAAAAAAAAAABQ"
"""The id of no topic."""


async def ids_of(cluster: Cluster, *topics: str) -> Mapping[str, str]:
    """The ids of topics, by name."""
    return {topic.name: topic.topic_id for topic in await cluster.topics(topics)}


def in_version(body: Message, version: int, topic_ids: Mapping[str, str]) -> Message:
    """The request as clients send it in a version; a topic of which no id is given gets an unknown one."""
    if version < OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS:
        return body
    if isinstance(body, messages.OffsetCommitRequest):
        topics = [TopicIdToCommit(topic_ids.get(topic.name, UNKNOWN), topic.partitions) for topic in body.topics]
        generation = body.generation_id_or_member_epoch
        return OffsetCommitRequest(body.group_id, topics, generation, body.member_id, body.group_instance_id)
    if isinstance(body, messages.OffsetFetchRequest):
        return OffsetFetchRequest([_group(group, topic_ids) for group in body.groups], body.require_stable)
    return body


def _group(group: messages.GroupToFetch, topic_ids: Mapping[str, str]) -> GroupOfIdsToFetch:
    topics = None
    if group.topics is not None:
        topics = [TopicIdToFetch(topic_ids.get(topic.name, UNKNOWN), topic.partition_indexes) for topic in group.topics]
    return GroupOfIdsToFetch(group.group_id, topics, group.member_id, group.member_epoch)
