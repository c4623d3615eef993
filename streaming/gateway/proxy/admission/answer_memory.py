"""The memory for the answers of handlers: each has room before its request is carried out.

An answer can be a million times as large as its request, and a client may send requests and read no answer. So what a
connection has yet to send counts, and a request whose answer may be large starts when there is room for it.
"""

import asyncio
from bisect import insort
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from streaming.gateway.proxy.admission.request_memory import RequestMemory
from streaming.gateway.wire.answer_room import NoAnswerRoom, Settle

ANSWER_BYTES_OF_A_CONNECTION = 1024 * 1024
"""What a connection may have of answers that are being made or that its client has yet to read; one answer has room
whatever its size."""

MOST_BYTES_OF_AN_ANSWER = 4 * 1024 * 1024
"""An answer about several groups has no further one beyond this size: the client asks for the others again."""


class _Waiting(NamedTuple):
    """An answer that waits for room, ``number`` in the order of the requests."""

    number: int
    size: int
    is_next: Callable[[], bool]
    admitted: "asyncio.Future[None]"


class ConnectionAnswers:
    """The answers of one connection.

    memory: that of all connections together.
    unread: returns the bytes of answers that are written and that the client has yet to read.
    delayed: returns the bytes of answers that are made, and that wait for the answer to an earlier request.

    ``reserved``: the bytes of answers that are being made.
    """

    def __init__(self, memory: RequestMemory, unread: Callable[[], int], delayed: Callable[[], int]) -> None:
        self.reserved = 0
        self._memory = memory
        self._unread = unread
        self._delayed = delayed
        self._numbers = count()
        self._waiting: list[_Waiting] = []

    def next_number(self) -> int:
        """The place of the next request in the order of the requests."""
        return next(self._numbers)

    async def admit(self, number: int, size: int, is_next: Callable[[], bool], *, may_park: bool) -> None:
        """Wait for room for an answer; earlier requests come first.

        is_next: returns whether all earlier answers are written: then those that are delayed wait for this one.
        may_park: whether the room is in this connection only.
        """
        waiting = _Waiting(number, size, is_next, asyncio.get_running_loop().create_future())
        insort(self._waiting, waiting)
        self.relieve()
        try:
            await waiting.admitted
            if not may_park and not self._delayed():
                await self._memory.room_for_answer()
        except asyncio.CancelledError:
            if not waiting.admitted.cancelled():
                self.reserved -= size
            self.relieve()
            raise
        if not may_park:
            self._memory.use(size)

    def has_memory(self) -> bool:
        """Whether the connections have room for more, all together."""
        return self._memory.has_space

    def use(self, change: int, *, may_park: bool) -> None:
        """Count bytes of answers that are being made (more than 0), or that are made."""
        self.reserved += change
        if not may_park:
            self._memory.use(change)

    def relieve(self) -> None:
        """Let answers start that have room by now."""
        while self._waiting and (self._waiting[0].admitted.cancelled() or self._fits(self._waiting[0])):
            waiting = self._waiting.pop(0)
            if not waiting.admitted.cancelled():
                self.reserved += waiting.size
                waiting.admitted.set_result(None)

    def _fits(self, waiting: _Waiting) -> bool:
        held = self.reserved + self._unread()
        if not waiting.is_next():
            held += self._delayed()
        return not held or held + waiting.size <= ANSWER_BYTES_OF_A_CONNECTION


class AnswerRoom:
    """The room that the answer to one request has reserved. ``is_next`` is that of :meth:`ConnectionAnswers.admit`."""

    def __init__(self, answers: ConnectionAnswers, is_next: Callable[[], bool]) -> None:
        self._answers = answers
        self._is_next = is_next
        self._number = answers.next_number()
        self._reserved = 0
        self._may_park = False
        self._turn = asyncio.Lock()

    async def reserve(self, size: int, may_park: bool = False) -> Settle:
        """Wait for room for the answer, or for a further part of it, see :func:`await_answer_room`."""
        async with self._turn:
            if not self._reserved:
                await self._answers.admit(self._number, size, self._is_next, may_park=may_park)
                self._may_park = may_park
            elif self._reserved + size > MOST_BYTES_OF_AN_ANSWER or not self._answers.has_memory():
                # To wait for room would be to wait for this very answer.
                raise NoAnswerRoom
            else:
                self._answers.use(size, may_park=self._may_park)
            self._reserved += size

        def settle(needed: int) -> None:
            nonlocal size
            self._answers.use(needed - size, may_park=self._may_park)
            self._reserved += needed - size
            size = needed
            self._answers.relieve()

        return settle

    def release(self) -> None:
        """Give the room back: the answer is made, or nobody waits for it."""
        self._answers.use(-self._reserved, may_park=self._may_park)
        self._reserved = 0
        self._answers.relieve()
