"""Bounds of what the coordinator has to answer at once, for one address and for all together.

A batch of the job makes all of its answers before its next one begins. An answer is as large as its group: while the
job makes a hundred answers of megabytes, the commits of everybody else wait. So a request whose answer may be large
waits here until there is room for it among those that the coordinator has yet to answer.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import UNSET

from streaming.client.directory import GroupDirectory
from streaming.gateway.wire.answer_room import await_answer_room
from streaming.gateway.wire.client_request import Caller

BYTES_AT_ONCE = 16 * 1024 * 1024
"""Of all large answers that the coordinator has yet to make: half a second of the job's time."""
BYTES_OF_AN_ADDRESS = BYTES_AT_ONCE // 2

LARGE_ANSWER_BYTES = 64 * 1024
"""The room in a connection for an answer of which nothing says that it is larger."""
SMALL_ANSWER_BYTES = 8 * 1024
"""What it counts at the coordinator: most of these answers are smaller."""
WORST_TO_TYPICAL = 20
"""What an answer could have is so many times what it has, as of offsets with and without metadata: of a group that is
not known to be large, the latter counts."""
SMALL_BYTES_AT_ONCE = BYTES_AT_ONCE
"""Small answers have room of their own, so that they wait for no large one."""

MAX_KNOWN_GROUPS = 10_000


class ReadBudget:
    """Room for answers of so many bytes in total, and of so many for each address.

    One answer has room whatever its size. Addresses take turns; the requests of one keep their order.
    """

    def __init__(self, of_all: int, of_an_address: int) -> None:
        self.used = 0
        self._of_all = of_all
        self._of_an_address = of_an_address
        self._used_by: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()

    @asynccontextmanager
    async def room(self, address: str, size: int) -> AsyncIterator[None]:
        """Wait for room for an answer of ``size`` bytes, and keep it while the block runs."""
        if self._waiting or not self._fits(address, size):
            await self._wait(address, size)
        else:
            self._use(address, size)
        try:
            yield
        finally:
            self._use(address, -size)
            self._admit()

    async def _wait(self, address: str, size: int) -> None:
        admitted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, deque()).append((size, admitted))
        # Others may wait for room that only this address lacks.
        self._admit()
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self._use(address, -size)
            self._admit()
            raise

    def _fits(self, address: str, size: int) -> bool:
        fits_all = not self.used or self.used + size <= self._of_all
        of_address = self._used_by.get(address, 0)
        return fits_all and (not of_address or of_address + size <= self._of_an_address)

    def _use(self, address: str, change: int) -> None:
        self.used += change
        left = self._used_by.get(address, 0) + change
        if left:
            self._used_by[address] = left
        else:
            self._used_by.pop(address, None)

    def _admit(self) -> None:
        """Admit what has room, an answer of each address in turn.

        What lacks room among all holds up the others: they would take what becomes free, and it would never have room.
        """
        passed_over = 0
        while passed_over < len(self._waiting):
            address, waiting = next(iter(self._waiting.items()))
            size, admitted = waiting[0]
            if not admitted.cancelled():
                if self.used and self.used + size > self._of_all:
                    return
                if not self._fits(address, size):
                    self._waiting.move_to_end(address)
                    passed_over += 1
                    continue
                self._use(address, size)
                admitted.set_result(None)
            waiting.popleft()
            passed_over = 0
            self._waiting.move_to_end(address)
            if not waiting:
                del self._waiting[address]


class LargeReads:
    """Admits the requests of the gateway's clients whose answers are as large as a group."""

    def __init__(self, directory: GroupDirectory) -> None:
        self._directory = directory
        self._large = ReadBudget(BYTES_AT_ONCE, BYTES_OF_AN_ADDRESS)
        self._small = ReadBudget(SMALL_BYTES_AT_ONCE, SMALL_BYTES_AT_ONCE // 2)
        self._answered: OrderedDict[tuple[str, str], int] = OrderedDict()

    @asynccontextmanager
    async def room(
        self, api: str, caller: Caller, group_id: str, most: int | None = None
    ) -> AsyncIterator[Callable[[int], None]]:
        """Wait for room for a group's answer, in the client's connection and then at the coordinator.

        Call the result with the bytes that the answer has. Raises :class:`NoAnswerRoom`.

        most: the bytes of the answer at most, if the request says what it wants of the group.
        """
        known = self._known_bytes(api, group_id)
        size = max(known, LARGE_ANSWER_BYTES)
        if most is not None:
            size = min(size, max(1, most if known else most // WORST_TO_TYPICAL))
        settle = await await_answer_room(size)
        is_large = size > LARGE_ANSWER_BYTES
        budget, weight = (self._large, size) if is_large else (self._small, min(size, SMALL_ANSWER_BYTES))

        def answered(actual: int) -> None:
            settle(actual)
            if most is None:
                self._remember(api, group_id, actual)

        async with budget.room(caller.host, weight):
            yield answered

    def _remember(self, api: str, group_id: str, size: int) -> None:
        """Remember the size of an answer: entries of the directory that earlier releases wrote have none."""
        key = api, group_id
        self._answered.pop(key, None)
        if size > LARGE_ANSWER_BYTES:
            self._answered[key] = size
            if len(self._answered) > MAX_KNOWN_GROUPS:
                self._answered.popitem(last=False)

    def _known_bytes(self, api: str, group_id: str) -> int:
        """How large a group's answer may be as far as that is known; 0 if it is not."""
        entry = self._directory.entry(group_id)
        stored = UNSET if entry is None else entry.stored_bytes
        return max(self._answered.get((api, group_id), 0), 0 if stored is UNSET else stored)
