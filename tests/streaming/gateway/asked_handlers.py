"""The gateway's group APIs without its sockets: payloads in, payloads out, each once through kio's bytes."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kio.index import load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.protocol import Entity

from streaming.gateway.backend import IsCoordinator
from streaming.gateway.groups import GroupSide, serving_groups
from streaming.gateway.request import Caller, ClientRequest
from streaming.topics import TopicNames
from tests.oracle.connection import Connections

LIMIT_SECONDS = 60.0
NODE_ID = 1
ANONYMOUS = "User:ANONYMOUS"


def every_group(_group_id: str, _node_id: int) -> bool:
    """One broker stands for the coordinator of every group."""
    return True


class AskedHandlers:
    """The handlers, asked as the server asks them: by clients from this machine whom nobody has authenticated."""

    def __init__(self, side: GroupSide) -> None:
        self.channel = side.channel
        self.directory = side.directory
        self.apis = side.apis

    async def ask(self, payload: Any, client_id: str = "oracle", node_id: int = NODE_ID) -> Any:
        """Hand a request to its handler, and return the answer as its bytes say it."""
        key, version = payload.__api_key__, payload.__version__
        served = self.apis[key]
        assert served.min_version <= version <= served.max_version
        caller = Caller(client_id, "127.0.0.1", ANONYMOUS)
        answer = await served.handle(ClientRequest(caller, node_id, key, version, payload))
        return through_bytes(answer, load_response_schema(key, version))


@asynccontextmanager
async def asked_handlers(
    bootstrap_servers: str, topics: TopicNames, is_coordinator: IsCoordinator = every_group
) -> AsyncIterator[AskedHandlers]:
    """Handlers for the coordinator of these topics."""
    broker = Connections(bootstrap_servers)
    try:
        async with serving_groups(bootstrap_servers, topics, "asked", {}, is_coordinator, broker.ask) as side:
            yield AskedHandlers(side)
    finally:
        broker.close()


async def wait_connected(handlers: AskedHandlers) -> None:
    """Wait until the coordinator's topics were found, and the directory read."""
    async with asyncio.timeout(LIMIT_SECONDS):
        await handlers.channel.wait_connected()
    assert await asyncio.to_thread(handlers.directory.wait_complete, LIMIT_SECONDS)


def through_bytes(payload: Entity, wire_type: type[Any]) -> Any:
    """A payload as it is read again from what was written."""
    assert type(payload) is wire_type
    buffer = io.BytesIO()
    entity_writer(wire_type)(buffer, payload)
    read, size = entity_reader(wire_type)(buffer.getvalue(), 0)
    assert size == len(buffer.getvalue())
    return read
