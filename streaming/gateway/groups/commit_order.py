"""The order of a client's commits to a group, which must be that of its requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streaming.gateway.wire.client_request import Caller

__all__ = ["CommitOrder", "CommitTurn"]


class CommitTurn:
    """The time in which a commit may append its event."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._has_ended = False

    def end(self) -> None:
        """Let the next commit append its event."""
        if not self._has_ended:
            self._has_ended = True
            self._lock.release()


class CommitOrder:
    """Lets the commits of a client to a group reach the log in the order in which the client sent them.

    The handlers of a connection's requests start in order and run concurrently. Before it appends its event, a commit
    may have to ask a broker about its topics, while another one finds the answer cached.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[Caller, str], _OpenCommits] = {}

    @asynccontextmanager
    async def turn(self, caller: Caller, group_id: str) -> AsyncIterator[CommitTurn]:
        """Wait until the turns of this caller's earlier commits to this group have ended, then run the block.

        The turn ends with the block, or earlier with :meth:`CommitTurn.end`.
        """
        key = caller, group_id
        commits = self._open.get(key)
        if commits is None:
            commits = self._open[key] = _OpenCommits()
        commits.count += 1
        try:
            await commits.lock.acquire()
            turn = CommitTurn(commits.lock)
            try:
                yield turn
            finally:
                turn.end()
        finally:
            commits.count -= 1
            if not commits.count:
                del self._open[key]


class _OpenCommits:
    """The commits of a caller to a group that have no response yet; the one with the lock may append its event."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.count = 0
