"""Kafka's wire protocol without a client library: what is sent is what the script says, legal or not."""

import asyncio
import io
import struct
from typing import Any, TypeVar

from kio.index import load_response_schema
from kio.serial import entity_reader, entity_writer

PayloadT = TypeVar("PayloadT")
LENGTH = struct.Struct(">i")


def framed(payload: Any, client_id: str, correlation_id: int) -> bytes:
    """A request as it goes over the wire, its length first."""
    header_type = payload.__header_schema__
    header = header_type(
        request_api_key=payload.__api_key__,
        request_api_version=payload.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    buffer = io.BytesIO()
    entity_writer(header_type)(buffer, header)
    entity_writer(type(payload))(buffer, payload)
    body = buffer.getvalue()
    return LENGTH.pack(len(body)) + body


class Disconnected(Exception):
    """The broker closed the connection instead of answering."""


class Connection:
    """One connection; one request at a time, as a broker takes them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0

    def send(self, payload: Any, client_id: str) -> None:
        """Hand a request to the socket at once."""
        self._correlation_id += 1
        self._writer.write(framed(payload, client_id, self._correlation_id))

    async def receive(self, request: Any) -> Any:
        """The answer to the request that was sent last. Raises :class:`Disconnected`."""
        try:
            (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
            frame = await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError) as failure:
            raise Disconnected from failure
        response_type = load_response_schema(request.__api_key__, request.__version__)
        header, size = entity_reader(response_type.__header_schema__)(frame, 0)
        assert header.correlation_id == self._correlation_id
        return entity_reader(response_type)(frame, size)[0]

    def close(self) -> None:
        """Close it, whatever is still owed."""
        self._writer.close()


class Connections:
    """Connections to one broker, used again when they are idle.

    A request that the broker parks keeps its connection busy: a client of Kafka could send nothing else on it.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        host, port = bootstrap_servers.rsplit(":", 1)
        self._host, self._port = host, int(port)
        self._idle: list[Connection] = []

    async def acquire(self) -> Connection:
        """An idle connection, or a new one."""
        if self._idle:
            return self._idle.pop()
        return Connection(*await asyncio.open_connection(self._host, self._port))

    def release(self, connection: Connection) -> None:
        """Give back a connection on which nothing is owed."""
        self._idle.append(connection)

    async def ask(self, payload: Any, client_id: str = "oracle") -> Any:
        """Send a request and return its answer."""
        connection = await self.acquire()
        try:
            connection.send(payload, client_id)
            answer = await connection.receive(payload)
        except BaseException:
            connection.close()
            raise
        self.release(connection)
        return answer

    def close(self) -> None:
        """Close the idle ones."""
        while self._idle:
            self._idle.pop().close()
