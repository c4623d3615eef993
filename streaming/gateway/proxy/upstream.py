"""A connection to a real broker on behalf of one client."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

from streaming.gateway.wire.frames import LENGTH_SIZE, ByteBuffer, FrameRefused, RefusalReason, parse_response_head


class ExpectedResponse(NamedTuple):
    """A response that the broker has yet to send. Exactly one of ``on_piece`` and ``on_frame`` is set.

    sent_at: when the request was sent, in monotonic seconds.
    on_piece: receives the frame in pieces as they arrive, and whether the piece is the last one.
    on_frame: receives the whole frame.
    waits_for_memory: whether the owner says when the whole frame may be collected.
    """

    api_key: int
    version: int
    correlation_id: int
    sent_at: float
    on_piece: Callable[[bytes, bool], None] | None = None
    on_frame: Callable[[bytes], None] | None = None
    waits_for_memory: bool = False


class UpstreamOwner(Protocol):
    """Receives the events of an upstream connection."""

    def response_started(self, expected: ExpectedResponse, seconds: float) -> None:
        """The first bytes of a response have arrived, ``seconds`` after its request was sent."""

    def upstream_lost(self, reason: str) -> None:
        """The connection has ended, or must end because the broker's bytes are not a valid response."""

    def may_collect(self, size: int) -> bool:
        """Whether the next response, of so many bytes, may be collected; if not, :meth:`Upstream.collect` continues."""

    def upstream_writable(self) -> None:
        """The write buffer has room again after ``is_full``."""


class Upstream(asyncio.Protocol):
    """The connection. A broker answers requests in order, so each response belongs to the oldest expected one.

    write_buffer_bytes: bytes that may be buffered for the broker before ``is_full`` is set.
    max_frame_bytes: the size of the largest response that is collected as a whole.
    """

    def __init__(self, owner: UpstreamOwner, write_buffer_bytes: int, max_frame_bytes: int) -> None:
        self._owner = owner
        self._write_buffer_bytes = write_buffer_bytes
        self._max_frame_bytes = max_frame_bytes
        self._transport: asyncio.Transport
        self._expected: deque[ExpectedResponse] = deque()
        self._received = ByteBuffer()
        self._streaming_left = 0
        self.is_held = False
        self._may_collect = False
        self._may_read = True
        self.is_full = False

    @property
    def has_requests_in_flight(self) -> bool:
        """Whether the broker has yet to send a response."""
        return bool(self._expected)

    @property
    def buffered_bytes(self) -> int:
        """Bytes that are buffered for the broker, or until a response is whole."""
        return self._transport.get_write_buffer_size() + len(self._received)

    def send(self, data: bytes) -> None:
        """Write to the broker; when this sets ``is_full``, write no more until ``upstream_writable``."""
        self._transport.write(data)

    def expect(self, expected: ExpectedResponse) -> None:
        """Register the response to the request that is being sent."""
        self._expected.append(expected)

    def set_reading(self, enabled: bool) -> None:
        """Resume or pause reading responses from the network."""
        self._may_read = enabled
        enabled = enabled and not self.is_held
        if enabled == self._transport.is_reading() or self._transport.is_closing():
            return
        if enabled:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def hold(self) -> None:
        """Read and process no further responses until :meth:`release`."""
        self.is_held = True
        self.set_reading(self._may_read)

    def release(self) -> None:
        """Continue after :meth:`hold`."""
        self.is_held = False
        self.set_reading(self._may_read)
        self._process()

    def collect(self) -> None:
        """Collect the next response, for which the owner has memory by now."""
        self._may_collect = True
        self.release()

    def close(self) -> None:
        """Close the connection when buffered bytes are written."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No isinstance check: uvloop's transports do not derive from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(self._write_buffer_bytes)

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.upstream_lost(f"the connection to the broker ended: {exc or 'closed by the broker'}")

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        self._owner.upstream_writable()

    def data_received(self, data: bytes) -> None:
        if len(data) < self._streaming_left:
            # Most bytes of a large response arrive here, and are not copied.
            self._stream(data)
            return
        self._received.feed(data)
        self._process()

    def _process(self) -> None:
        try:
            while len(self._received) and not self.is_held and self._process_received():
                pass
        except FrameRefused as refused:
            self._owner.upstream_lost(f"the broker sent an invalid response: {refused}")

    def _process_received(self) -> bool:
        """Process received bytes of the next response; return whether there were enough of them."""
        if self._streaming_left:
            self._stream(self._received.read(self._streaming_left))
            return True
        head = parse_response_head(self._received)
        if head is None:
            return False
        if not self._expected or self._expected[0].correlation_id != head.correlation_id:
            raise FrameRefused(RefusalReason.HEADER, f"unexpected correlation id {head.correlation_id}")
        expected = self._expected[0]
        size = LENGTH_SIZE + head.length
        if expected.on_piece is not None:
            self._owner.response_started(expected, time.monotonic() - expected.sent_at)
            self._streaming_left = size
            return True
        if size > self._max_frame_bytes:
            raise FrameRefused(RefusalReason.FRAME_TOO_LARGE, f"a response of {size} bytes")
        if expected.waits_for_memory and not self._may_collect:
            self._may_collect = self._owner.may_collect(size)
            if not self._may_collect:
                self.hold()
                return False
        if len(self._received) < size:
            return False
        self._may_collect = False
        self._owner.response_started(expected, time.monotonic() - expected.sent_at)
        self._expected.popleft()
        assert expected.on_frame is not None
        expected.on_frame(self._received.read(size))
        return True

    def _stream(self, piece: bytes) -> None:
        self._streaming_left -= len(piece)
        is_last = self._streaming_left == 0
        on_piece = self._expected.popleft().on_piece if is_last else self._expected[0].on_piece
        assert on_piece is not None
        on_piece(piece, is_last)
