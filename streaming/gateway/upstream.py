"""The gateway's connection to a real broker on behalf of one client, and how a handler asks that broker itself."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import NamedTuple, Protocol, cast

from kio.static.protocol import RequestPayload, ResponsePayload

from streaming.gateway.frames import LENGTH_SIZE, ByteBuffer, FrameRefused, Refusal, peek_response_head

__all__ = ["Expected", "Forward", "Upstream", "UpstreamLost", "UpstreamUser", "forward_upstream"]

Forward = Callable[[RequestPayload], Awaitable[ResponsePayload]]

current_forward: ContextVar[Forward] = ContextVar("current_forward")
"""Set where a handler runs: how to reach the broker over the connection of the client whose request is handled."""


class UpstreamLost(Exception):
    """The broker could not be reached, or its connection ended before the answer; the client's is closed too."""


async def forward_upstream(payload: RequestPayload) -> ResponsePayload:
    """Ask the real broker of the listener that a handled request came to, as the client that sent it.

    For handlers only: what the broker authenticated on the client's connection counts for this request too. Raises
    :class:`UpstreamLost`, and one of :data:`streaming.gateway.codec.MALFORMED` for an answer that cannot be read.
    """
    return await current_forward.get()(payload)


class Expected(NamedTuple):
    """A response that the broker owes. Exactly one of ``stream`` and ``collect`` is given.

    stream: takes the frame in pieces as they come, and whether a piece is the last.
    collect: takes the whole frame.
    """

    api_key: int
    version: int
    correlation_id: int
    sent_at: float
    stream: Callable[[bytes, bool], None] | None = None
    collect: Callable[[bytes], None] | None = None


class UpstreamUser(Protocol):
    """Who is told what happens to the connection."""

    def upstream_answers(self, expected: Expected, seconds: float) -> None:
        """The broker begins to answer, so long after it was asked."""

    def upstream_lost(self, why: str) -> None:
        """The connection has ended, or has to, since it made no sense."""

    def upstream_writable(self) -> None:
        """There is room again after ``is_full``."""


class Upstream(asyncio.Protocol):
    """The connection. A broker answers in the order of the requests, so what a response is for needs no look inside.

    write_buffer: bytes that may wait for the broker before ``is_full`` is set.
    largest: bytes of the largest response that is collected.
    """

    def __init__(self, user: UpstreamUser, write_buffer: int, largest: int) -> None:
        self._user = user
        self._write_buffer = write_buffer
        self._largest = largest
        self._transport: asyncio.Transport
        self._expected: deque[Expected] = deque()
        self._unread = ByteBuffer()
        self._streaming = 0
        self.is_full = False

    @property
    def owes(self) -> bool:
        """Whether an answer is to come."""
        return bool(self._expected)

    @property
    def buffered_bytes(self) -> int:
        """Bytes that wait here for the broker, or for the rest of an answer that is collected."""
        return self._transport.get_write_buffer_size() + len(self._unread)

    def send(self, data: bytes) -> None:
        """Write to the broker; when ``is_full`` is set afterwards, wait for ``upstream_writable``."""
        self._transport.write(data)

    def expect(self, expected: Expected) -> None:
        """Announce the answer to the request that is being sent."""
        self._expected.append(expected)

    def read(self, wanted: bool) -> None:
        """Go on or stop taking responses from the network."""
        if wanted == self._transport.is_reading() or self._transport.is_closing():
            return
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def close(self) -> None:
        """End it when what was sent has gone out."""
        self._transport.close()

    def abort(self) -> None:
        """End it at once."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an instance of it in every loop: uvloop's are of their own kind.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(self._write_buffer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._user.upstream_lost(f"the broker's connection ended: {exc or 'it closed it'}")

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        self._user.upstream_writable()

    def data_received(self, data: bytes) -> None:
        if len(data) < self._streaming:
            # Most of the bytes of a large response come this way, and are not copied.
            self._stream(data)
            return
        self._unread.feed(data)
        try:
            while len(self._unread) and self._take():
                pass
        except FrameRefused as refused:
            self._user.upstream_lost(f"the broker's answer made no sense: {refused}")

    def _take(self) -> bool:
        """Handle what has arrived of the next response; whether it was enough to get on."""
        if self._streaming:
            self._stream(self._unread.take(self._streaming))
            return True
        head = peek_response_head(self._unread)
        if head is None:
            return False
        if not self._expected or self._expected[0].correlation_id != head.correlation_id:
            raise FrameRefused(Refusal.HEADER, f"nobody waits for correlation id {head.correlation_id}")
        expected = self._expected[0]
        size = LENGTH_SIZE + head.length
        if expected.stream is not None:
            self._user.upstream_answers(expected, time.monotonic() - expected.sent_at)
            self._streaming = size
            return True
        if size > self._largest:
            raise FrameRefused(Refusal.FRAME_TOO_LARGE, f"a response of {size} bytes")
        if len(self._unread) < size:
            return False
        self._user.upstream_answers(expected, time.monotonic() - expected.sent_at)
        self._expected.popleft()
        assert expected.collect is not None
        expected.collect(self._unread.take(size))
        return True

    def _stream(self, piece: bytes) -> None:
        self._streaming -= len(piece)
        is_last = self._streaming == 0
        stream = self._expected.popleft().stream if is_last else self._expected[0].stream
        assert stream is not None
        stream(piece, is_last)
