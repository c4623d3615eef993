"""Kafka's wire protocol without a client library, which can also send invalid requests."""

import asyncio
import io
import struct
from typing import Any, TypeVar

from kio.index import load_response_schema
from kio.serial import entity_reader, entity_writer

PayloadT = TypeVar("PayloadT")
LENGTH = struct.Struct(">i")


def framed(payload: Any, client_id: str, correlation_id: int) -> bytes:
    """Encode a request with its header and length."""
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
    """The broker closed the connection instead of responding."""


class Connection:
    """A connection with one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0

    def send(self, payload: Any, client_id: str) -> None:
        """Write a request to the socket at once."""
        self._correlation_id += 1
        self._writer.write(framed(payload, client_id, self._correlation_id))

    async def receive(self, request: Any) -> Any:
        """Return the response to the last request. Raises :class:`Disconnected`."""
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
        """Close the connection, even with an outstanding response."""
        self._writer.close()


class Connections:
    """Connections to one broker, reused when they are idle.

    A request that the broker parks blocks its connection: the broker handles no further request on it.

    ``local_host`` is the address from which they connect, None for the system's choice.
    """

    def __init__(self, bootstrap_servers: str, local_host: str | None = None) -> None:
        host, port = bootstrap_servers.rsplit(":", 1)
        self._host, self._port = host, int(port)
        self._local_address = None if local_host is None else (local_host, 0)
        self._idle: list[Connection] = []

    async def acquire(self) -> Connection:
        """Return an idle connection, or open one."""
        if self._idle:
            return self._idle.pop()
        return Connection(*await asyncio.open_connection(self._host, self._port, local_addr=self._local_address))

    def release(self, connection: Connection) -> None:
        """Return a connection without an outstanding response to the idle ones."""
        self._idle.append(connection)

    async def ask(self, payload: Any, client_id: str = "oracle") -> Any:
        """Send a request and return its response."""
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
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()
