"""The gateway's group APIs without its sockets: payloads in, payloads out, encoded and decoded once by kio."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kio.index import load_response_schema
from kio.static.protocol import Entity

from coordinator_logic.messages import Message
from streaming.contract.topics import TopicNames
from streaming.gateway.groups.backend import IsCoordinator
from streaming.gateway.groups.channel import GroupChannel
from streaming.gateway.groups.serving import GroupService, serving_groups
from streaming.gateway.groups.timeout_policies import GroupTimeouts
from streaming.gateway.options import GatewayOptions, load_gateway_options
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.wire.client_request import Caller, ClientRequest, ServedApi
from tests.oracle.sides.connection import Connections
from tests.support.waiting import LIMIT_SECONDS
from tests.support.wire_types import read_entity, read_whole, written, written_by_kio

NODE_ID = 1
ANONYMOUS = "User:ANONYMOUS"


def every_group(_group_id: str, _node_id: int) -> bool:
    """The coordinator of every group is advertised at the same broker."""
    return True


def cluster_of(bootstrap_servers: str) -> Cluster:
    """A gateway's cluster with default options, not yet opened."""
    return Cluster(load_gateway_options({"bootstrap-servers": bootstrap_servers}), {})


class DirectHandlers:
    """Calls the handlers as the server does, for an unauthenticated client on this machine."""

    def __init__(self, service: GroupService, cluster: Cluster) -> None:
        self.cluster = cluster
        self.channel = service.channel
        self.directory = service.directory
        self.apis = service.apis

    async def ask(
        self, payload: Any, client_id: str = "oracle", node_id: int = NODE_ID, host: str = "127.0.0.1"
    ) -> Any:
        """Call the handler of a request, and return its response as decoded from the encoded bytes."""
        key, version = payload.__api_key__, payload.__version__
        served = self.apis[key]
        assert served.min_version <= version <= served.max_version
        caller = Caller(client_id, host, ANONYMOUS)
        request = ClientRequest(caller, node_id, key, version, decoded(payload, served))
        return as_read_by_client(await served.handle(request), load_response_schema(key, version))


@asynccontextmanager
async def direct_handlers(
    bootstrap_servers: str,
    topics: TopicNames,
    is_coordinator: IsCoordinator = every_group,
    timeouts: GroupTimeouts | None = None,
) -> AsyncIterator[DirectHandlers]:
    """Handlers for the coordinator of these topics, with a gateway's own timeouts unless others are given."""
    broker = Connections(bootstrap_servers)
    try:
        cluster = cluster_of(bootstrap_servers)
        options = GatewayOptions(bootstrap_servers=bootstrap_servers, topic_prefix=topics.prefix)
        serving = serving_groups(options, is_coordinator, cluster, forward=broker.ask, timeouts=timeouts)
        async with serving as service:
            yield DirectHandlers(service, cluster)
    finally:
        broker.close()


async def connected(channel: GroupChannel) -> None:
    """Wait until the coordinator's topics are found."""
    while not channel.is_connected:
        await asyncio.sleep(0.01)


async def wait_connected(handlers: DirectHandlers) -> None:
    """Wait until the coordinator's topics are found, and the directory is read."""
    async with asyncio.timeout(LIMIT_SECONDS):
        await connected(handlers.channel)
    assert await asyncio.to_thread(handlers.directory.wait_complete, LIMIT_SECONDS)


def decoded(payload: Any, served: ServedApi) -> Any:
    """A request as the gateway decodes it from kio's bytes."""
    return read_entity(type(payload), written_by_kio(payload), served.message_type)


def as_read_by_client(answer: Entity | Message, response_type: type[Any]) -> Any:
    """A response as kio reads it from the gateway's bytes, and nothing else from them."""
    return read_whole(response_type, written(answer, response_type))
