"""The group side of a gateway, put together: from Kafka's address to the served APIs."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.gateway.authorization import Authorizer
from streaming.gateway.backend import GroupBackend, IsCoordinator
from streaming.gateway.channel import GroupChannel
from streaming.gateway.directory import GroupDirectory
from streaming.gateway.registry import group_apis
from streaming.gateway.request import ServedApi
from streaming.gateway.topic_catalog import TopicCatalog
from streaming.gateway.upstream import Forward, forward_upstream
from streaming.topics import TopicNames

__all__ = ["GroupSide", "serving_groups"]


class GroupSide:
    """The served group APIs (``apis``, by key), and what they stand on, to look at."""

    def __init__(self, channel: GroupChannel, directory: GroupDirectory, apis: Mapping[int, ServedApi]) -> None:
        self.channel = channel
        self.directory = directory
        self.apis = apis


@asynccontextmanager
async def serving_groups(
    bootstrap_servers: str,
    topics: TopicNames,
    client_id: str,
    config: LibrdkafkaConfig,
    is_coordinator: IsCoordinator,
    forward: Forward = forward_upstream,
) -> AsyncIterator[GroupSide]:
    """Serve groups by the coordinator of these topics, while the block runs.

    It need not be there, nor Kafka: until it is, clients are told to ask again. ``config`` is added to all librdkafka
    clients, ``forward`` asks a real broker as the client whose request is handled.
    """
    channel = GroupChannel(bootstrap_servers, topics, client_id, config)
    directory = GroupDirectory(bootstrap_servers, topics.directory, client_id, config)
    authorizer = Authorizer(TopicCatalog(bootstrap_servers, client_id, config), forward)
    apis = group_apis(GroupBackend(channel, directory, authorizer, is_coordinator))
    await channel.start()
    directory.start()
    try:
        yield GroupSide(channel, directory, apis)
    finally:
        await asyncio.gather(channel.close(), asyncio.to_thread(directory.close))
