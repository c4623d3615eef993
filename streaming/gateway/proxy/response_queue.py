"""The responses that a client is waiting for, in the order of its requests."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class PendingResponse:
    """A response that the client is waiting for.

    buffered_bytes: memory that the request, and later the response, occupies.
    frame: the complete response, once a handler or the broker has answered and earlier responses delay it.
    """

    buffered_bytes: int
    is_from_broker: bool
    frame: bytes | None = None


class ResponseQueue:
    """Writes responses in the order of their requests. Complete responses may arrive in any order and wait here.

    write: sends bytes to the client.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._pending: deque[PendingResponse] = deque()
        self.buffered_bytes = 0
        """Bytes of requests in handlers, and of complete responses that earlier ones delay."""
        self._in_handlers = 0

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def awaits_handler(self) -> bool:
        """Whether a handler has yet to answer a request."""
        return self._in_handlers > 0

    @property
    def delayed_bytes(self) -> int:
        """Bytes of complete responses that an earlier one delays."""
        return sum(len(each.frame) for each in self._pending if each.frame is not None)

    def is_first(self, pending: PendingResponse) -> bool:
        """Whether all earlier responses are written."""
        return bool(self._pending) and self._pending[0] is pending

    def append(self, buffered_bytes: int = 0, *, is_from_broker: bool = False) -> PendingResponse:
        """Add the next request's response, which is to come from the broker or from a handler."""
        pending = PendingResponse(buffered_bytes, is_from_broker)
        self._pending.append(pending)
        self.buffered_bytes += buffered_bytes
        self._in_handlers += not is_from_broker
        return pending

    def complete(self, pending: PendingResponse, frame: bytes) -> None:
        """Set a whole response, and write it once all earlier ones are written."""
        pending.frame = frame
        self.buffered_bytes += len(frame) - pending.buffered_bytes
        pending.buffered_bytes = len(frame)
        self._in_handlers -= not pending.is_from_broker
        self._flush()

    def write_piece(self, pending: PendingResponse, piece: bytes, is_last: bool) -> None:
        """Write a piece of the first response in the queue."""
        assert pending is self._pending[0], "a response from the broker overtook another one"
        self._write(piece)
        if is_last:
            self._remove_first()
            self._flush()

    def _flush(self) -> None:
        while self._pending and (frame := self._pending[0].frame) is not None:
            self._remove_first()
            self._write(frame)

    def _remove_first(self) -> None:
        self.buffered_bytes -= self._pending.popleft().buffered_bytes
