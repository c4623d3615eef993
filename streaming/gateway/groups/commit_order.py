"""The order of a client's commits to a group, which must be that of its requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from streaming.gateway.wire.client_request import Caller


class AppendPermit:
    """With it, a commit may append its event."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._is_released = False

    def release(self) -> None:
        """Let the next commit append its event."""
        if not self._is_released:
            self._is_released = True
            self._lock.release()


class CommitOrder:
    """Lets the commits of a client to a group reach the log in the order in which the client sent them.

    The handlers of a connection's requests start in order and run concurrently. Before it appends its event, a commit
    may have to ask a broker about its topics, while another one finds the answer cached.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[Caller, str], asyncio.Lock] = WeakValueDictionary()
        """By client and group, as long as a commit refers to it. The commit that has it may append its event."""

    @asynccontextmanager
    async def permit(self, caller: Caller, group_id: str) -> AsyncIterator[AppendPermit]:
        """Wait until this caller's earlier commits to this group have released their permits, then run the block.

        The permit is released with the block, or earlier with :meth:`AppendPermit.release`.
        """
        lock = self._locks.setdefault((caller, group_id), asyncio.Lock())
        await lock.acquire()
        permit = AppendPermit(lock)
        try:
            yield permit
        finally:
            permit.release()
