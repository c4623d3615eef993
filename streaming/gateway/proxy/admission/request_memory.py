"""The memory for the requests and answers of all clients together, from a request's arrival until its answer is read.

A request has room for all of its bytes before the gateway collects it, so each one that has begun can be completed.
While there is no room, further requests wait in their clients' sockets, in the order in which their connections asked;
a broker does the same beyond ``queued.max.request.bytes`` (KIP-72).
"""

import asyncio
from collections import deque
from collections.abc import Callable

ALWAYS_BYTES = 8 * 1024
"""What each connection may have in any case. Heartbeats and most other requests are smaller, so they go on, and the
members that a parked JoinGroup waits for can join."""


class RequestMemory:
    """The memory of one gateway: a request or an answer has room while all take less than ``max_bytes`` together.

    ``used``: the bytes of all requests, of the answers that are being made, and of those that clients have yet to read.
    """

    def __init__(self, max_bytes: int) -> None:
        self.used = 0
        self._max_bytes = max_bytes
        self._waiting: dict[ConnectionMemory, None] = {}
        self._waiting_answers: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    @property
    def waiting(self) -> int:
        """How many connections have a request that waits for room, for itself or for its answer."""
        return len(self._waiting) + len(self._waiting_answers)

    @property
    def has_space(self) -> bool:
        """Whether a request or an answer has room."""
        return self.used < self._max_bytes

    async def room_for_answer(self) -> None:
        """Wait until an answer has room, after those that wait already; the caller uses it at once."""
        if self.has_space and not self._waiting_answers:
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting_answers.append(turn)
        self._schedule()
        try:
            await turn
        except asyncio.CancelledError:
            self._waiting_answers = deque(each for each in self._waiting_answers if not each.cancelled())
            self._schedule()
            raise

    def has_room(self, connection: "ConnectionMemory") -> bool:
        """Whether a connection may have one more request. If not, it resumes once there is room."""
        if self.has_space and (connection.is_next or not self._waiting):
            return True
        self._waiting.setdefault(connection)
        return False

    def use(self, change: int) -> None:
        """Count bytes that a connection has reserved (more than 0) or released."""
        self.used += change
        if change < 0:
            self._schedule()

    def forget(self, connection: "ConnectionMemory") -> None:
        """Do not resume a connection any more."""
        self._waiting.pop(connection, None)

    def _schedule(self) -> None:
        if (self._waiting or self._waiting_answers) and not self._is_scheduled and self.has_space:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._resume_first)

    def _resume_first(self) -> None:
        self._is_scheduled = False
        if not self.has_space:
            return
        try:
            if self._waiting_answers:
                # An answer first: with it, its request leaves.
                turn = self._waiting_answers.popleft()
                if not turn.cancelled():
                    turn.set_result(None)
            elif self._waiting:
                connection = next(iter(self._waiting))
                del self._waiting[connection]
                connection.resume_first()
        finally:
            self._schedule()


class ConnectionMemory:
    """What one connection reserves of it. ``resume`` is called when a request that had no room may be admitted.

    ``is_next``: whether the connection comes before those that ask now or wait.
    """

    def __init__(self, memory: RequestMemory, resume: Callable[[], None]) -> None:
        self.is_next = False
        self._memory = memory
        self._resume = resume
        self._held = 0
        self._is_closed = False

    def reserve(self, size: int) -> bool:
        """Reserve room for a request of ``size`` bytes; return False if it must wait."""
        if self._held + size > ALWAYS_BYTES and not self._memory.has_room(self):
            return False
        self._memory.forget(self)
        self.settle(self._held + size)
        return True

    def settle(self, held: int) -> None:
        """Set the bytes that all requests of the connection have now; ignored after :meth:`close`."""
        if held != self._held and not self._is_closed:
            change, self._held = held - self._held, held
            self._memory.use(change)

    def close(self) -> None:
        """Release everything, for good."""
        self._memory.forget(self)
        self.settle(0)
        self._is_closed = True

    def resume_first(self) -> None:
        """Let the connection go on, before all others that wait for room."""
        self.is_next = True
        try:
            self._resume()
        finally:
            self.is_next = False
