"""Room for answers at the coordinator, which the addresses of clients share."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


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
    async def room(self, address: str, size: int) -> AsyncIterator[Callable[[], None]]:
        """Wait for room for an answer of ``size`` bytes, and keep it while the block runs.

        Call the result to give the room back earlier.
        """
        if self._waiting or not self._fits(address, size):
            await self._wait(address, size)
        else:
            self._use(address, size)
        kept = size

        def give_back() -> None:
            nonlocal kept
            if kept:
                self._use(address, -kept)
                kept = 0
                self._admit()

        try:
            yield give_back
        finally:
            give_back()

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
