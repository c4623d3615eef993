"""The order of a client's commits to a group, which must be that of its requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streaming.gateway.wire.client_request import Caller

__all__ = ["AppendPermit", "CommitOrder"]


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
        self._open: dict[tuple[Caller, str], _OpenCommits] = {}

    @asynccontextmanager
    async def permit(self, caller: Caller, group_id: str) -> AsyncIterator[AppendPermit]:
        """Wait until this caller's earlier commits to this group have released their permits, then run the block.

        The permit is released with the block, or earlier with :meth:`AppendPermit.release`.
        """
        key = caller, group_id
        commits = self._open.get(key)
        if commits is None:
            commits = self._open[key] = _OpenCommits()
        commits.count += 1
        try:
            await commits.lock.acquire()
            permit = AppendPermit(commits.lock)
            try:
                yield permit
            finally:
                permit.release()
        finally:
            commits.count -= 1
            if not commits.count:
                del self._open[key]


class _OpenCommits:
    """The commits of a caller to a group that have no response yet; the one with the lock may append its event."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.count = 0
