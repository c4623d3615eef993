"""The gateway's own questions to one broker, over a connection of their own."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kio.static.protocol import RequestPayload

from streaming.gateway.addresses import Address
from streaming.gateway.codec import MALFORMED, decode_response, encode_request
from streaming.gateway.frames import LENGTH_SIZE
from streaming.gateway.sasl_client import SaslRefused, authenticate
from streaming.gateway.upstream import Forward

__all__ = ["ASKING_FAILED", "asking"]

LARGEST_ANSWER = 16 * 1024 * 1024

ASKING_FAILED = (OSError, asyncio.IncompleteReadError, SaslRefused, *MALFORMED)
"""What a question, or the connection for it, may raise. A ``TimeoutError`` is an ``OSError``."""


@asynccontextmanager
async def asking(
    address: Address,
    tls: ssl.SSLContext | None,
    client_id: str,
    seconds: float,
    credentials: Mapping[str, str] | None = None,
) -> AsyncIterator[Forward]:
    """A way to ask this broker, one question after the other, for at most so many seconds.

    ``credentials``: librdkafka's properties, by which the connection is authenticated first; None: it is not.
    """
    host, port = address
    async with asyncio.timeout(seconds):
        server_hostname = host if tls else None
        reader, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname=server_hostname)
        try:

            async def ask(payload: RequestPayload) -> Any:
                writer.write(encode_request(payload, 0, client_id))
                begin = await reader.readexactly(LENGTH_SIZE)
                length = int.from_bytes(begin, "big")
                if length > LARGEST_ANSWER:
                    raise ValueError(f"an answer of {length} bytes")
                frame = begin + await reader.readexactly(length)
                return decode_response(frame, payload.__api_key__, payload.__version__)

            if credentials is not None:
                await authenticate(ask, credentials)
            yield ask
        finally:
            writer.close()
