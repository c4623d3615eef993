"""Requests for offsets by the ids of topics instead of their names."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from coordinator_logic.messages import Message, OffsetCommitRequest, OffsetFetchRequest, TopicToCommit, TopicToFetch
from streaming.gateway.groups.handlers.topic_ids import OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS
from streaming.gateway.proxy.cluster import Cluster

__all__ = ["ids_of", "in_version"]

TopicT = TypeVar("TopicT", TopicToCommit, TopicToFetch)

UNKNOWN = "AAAAAAAAAAAAAAAAAAAABQ"
"""The id of no topic."""


async def ids_of(cluster: Cluster, *topics: str) -> Mapping[str, str]:
    """The ids of topics, by name."""
    return {topic.name: topic.topic_id for topic in await cluster.topics(topics)}


def in_version(body: Message, version: int, topic_ids: Mapping[str, str]) -> Message:
    """The request as clients send it in a version; a topic of which no id is given gets an unknown one."""

    def by_id(topics: list[TopicT]) -> list[TopicT]:
        return [replace(topic, name="", topic_id=topic_ids.get(topic.name, UNKNOWN)) for topic in topics]

    if version < OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS:
        return body
    if isinstance(body, OffsetCommitRequest):
        return replace(body, topics=by_id(body.topics))
    if isinstance(body, OffsetFetchRequest):
        groups = [
            group if group.topics is None else replace(group, topics=by_id(group.topics)) for group in body.groups
        ]
        return replace(body, groups=groups)
    return body
