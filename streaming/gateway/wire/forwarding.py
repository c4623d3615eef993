"""Sends a handler's own requests to the real broker, over the connection of the client whose request it handles."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from kio.static.protocol import RequestPayload, ResponsePayload

Forward = Callable[[RequestPayload], Awaitable[ResponsePayload]]
"""Sends a request to a broker and returns its response."""

current_forward: ContextVar[Forward] = ContextVar("current_forward")
"""In a handler's context: sends over the upstream connection of the client whose request is handled."""


class UpstreamLost(Exception):
    """The broker is unreachable, or its connection ended before the response; the client's connection is closed too."""


async def forward_upstream(payload: RequestPayload) -> ResponsePayload:
    """Send a request to the real broker as the client whose request is being handled.

    Only handlers may call it. The broker applies the principal that it authenticated on the client's connection.
    Raises :class:`UpstreamLost`, or one of :data:`streaming.gateway.wire.codec.MALFORMED` for a malformed response.
    """
    return await current_forward.get()(payload)
