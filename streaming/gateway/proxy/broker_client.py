"""Sends the gateway's own requests to one broker, over a short-lived connection."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kio.static.protocol import RequestPayload

from streaming.gateway.security.sasl_authentication import SaslRefused, authenticate
from streaming.gateway.wire.brokers import Address
from streaming.gateway.wire.codec import MALFORMED, decode_response_in_steps, encode_request
from streaming.gateway.wire.forwarding import Forward
from streaming.gateway.wire.frames import LENGTH_SIZE
from streaming.gateway.wire.steps import Steps

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
STEPS_PER_SLICE = 10
"""How many entities of a response are decoded before the event loop does other work: less than a millisecond's work."""

BROKER_CONNECTION_ERRORS = (OSError, asyncio.IncompleteReadError, SaslRefused, *MALFORMED)
"""What connecting or a request may raise. A ``TimeoutError`` is an ``OSError``."""


@asynccontextmanager
async def broker_connection(
    address: Address,
    tls: ssl.SSLContext | None,
    client_id: str,
    seconds: float,
    credentials: Mapping[str, str] | None = None,
) -> AsyncIterator[Forward]:
    """Connect to a broker; the result sends one request at a time and returns its response.

    seconds: the limit for connecting and all requests together.
    credentials: librdkafka's properties, with which the connection authenticates first; None to skip authentication.
    """
    host, port = address
    async with asyncio.timeout(seconds):
        server_hostname = host if tls else None
        reader, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname=server_hostname)
        try:

            async def send(payload: RequestPayload) -> Any:
                writer.write(encode_request(payload, 0, client_id))
                begin = await reader.readexactly(LENGTH_SIZE)
                length = int.from_bytes(begin, "big")
                if length > MAX_RESPONSE_BYTES:
                    raise ValueError(f"a response of {length} bytes")
                frame = begin + await reader.readexactly(length)
                return await _in_slices(decode_response_in_steps(frame, payload.__api_key__, payload.__version__))

            if credentials is not None:
                await authenticate(send, credentials)
            yield send
        finally:
            writer.close()


async def _in_slices(steps: Steps[Any]) -> Any:
    """Run steps between what else the event loop does, and return their result."""
    try:
        while True:
            for _ in range(STEPS_PER_SLICE):
                next(steps)
            await asyncio.sleep(0)
    except StopIteration as end:
        return end.value
