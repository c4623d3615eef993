"""Shares the event loop between clients: long work has time slices, and each client has a share of the loop's time.

Beyond its share, a client's long work waits, and the gateway reads no further requests of it: the loop serves the
other clients. Kafka's request quota mutes a client's connections for the same reason (KIP-124). The first
slice of each piece of work is not counted, so a client with small requests has no account, however many it sends.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from streaming.gateway.wire.client_request import Caller, QuotaEntity
from streaming.gateway.wire.steps import Steps

T = TypeVar("T")

SLICE_SECONDS = 0.00025
"""How long a slice lasts; its last step may end later. A heartbeat takes some five passes of the loop, each of which
may have a slice: with slices of half a millisecond, it took twice as long while a client used up its burst."""

CLIENT_SHARE = 0.2
"""The part of the loop's time that the long work of one client gets by default: the other clients' requests wait for it
in one of five passes of the loop."""

BURST_SECONDS = 0.1
"""The time that a client may use at once after it used none for half a second: an OffsetCommit of 10,000 partitions."""

ACCOUNTS_BEFORE_SWEEP = 1000


class LoopShare:
    """Gives one time slice to one piece of long work in each pass of the event loop, to the clients in rotation.

    So long work delays what else the loop does by one slice in each pass, and a client with many pieces of work delays
    those of other clients no more than one with a single piece. A client that used up its time waits until it has some
    again; it gets ``client_share`` seconds in each second.
    """

    def __init__(self, client_share: float = CLIENT_SHARE) -> None:
        self._client_share = client_share
        self._accounts: dict[QuotaEntity, _Account] = {}
        self._uncounted = _Uncounted(client_share, 0.0)
        self._sweep_at = ACCOUNTS_BEFORE_SWEEP
        self._rotation: deque[_Account] = deque()
        self._is_scheduled = False

    def defer(self, client: QuotaEntity | None, work: Callable[[], None]) -> None:
        """Call ``work`` once, after the client's work that waits already, when the client has time left.

        Without a client the slice is not counted: requests that are passed on have no bound but the slices.
        """
        account = self._uncounted if client is None else self._account(client)
        account.waiting.append(work)
        if not account.is_queued:
            self._enqueue(account)

    def run(
        self,
        client: QuotaEntity | None,
        steps: Steps[T],
        finished: Callable[[T], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Run steps: the first slice at once, further ones as :meth:`defer` gives them; then call one of the two."""

        def run_slice(this: Callable[..., None]) -> None:
            try:
                _run_slice(steps)
            except StopIteration as end:
                finished(end.value)
            except Exception as failure:
                failed(failure)
            else:
                # A function that named itself would be garbage that only a collection finds, with all it refers to.
                self.defer(client, partial(this, this))

        run_slice(run_slice)

    async def complete(self, caller: Caller, steps: Steps[T]) -> T:
        """Run steps, the first slice at once, and return their result."""
        try:
            _run_slice(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        client = caller.quota_entity
        while True:
            await self.await_slice(client)
            started = loop_time()
            try:
                _run_slice(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                self.charge(client, loop_time() - started)

    async def await_slice(self, client: QuotaEntity, seconds: float = 0.0) -> None:
        """Wait for a slice, for work of the client that takes the loop that many seconds."""
        begun = asyncio.Event()
        self.defer(client, begun.set)
        await begun.wait()
        self.charge(client, seconds)

    def charge(self, client: QuotaEntity, seconds: float) -> None:
        """Count seconds of the loop that the client has used."""
        self._account(client).charge(seconds, loop_time())

    def _account(self, client: QuotaEntity) -> "_Account":
        account = self._accounts.get(client)
        if account is None:
            if len(self._accounts) >= self._sweep_at:
                self._sweep()
            account = self._accounts[client] = _Account(self._client_share, loop_time())
        return account

    def _sweep(self) -> None:
        """Forget the clients that have all their time left: a new account is the same."""
        now = loop_time()
        self._accounts = {client: each for client, each in self._accounts.items() if not each.is_unused(now)}
        self._sweep_at = max(ACCOUNTS_BEFORE_SWEEP, 2 * len(self._accounts))

    def _enqueue(self, account: "_Account") -> None:
        """Give the client's work a place in the rotation, once it has time left."""
        account.is_queued = True
        if account.is_overdrawn(loop_time()):
            asyncio.get_running_loop().call_later(account.seconds_until_slice, self._enqueue, account)
            return
        self._rotation.append(account)
        if not self._is_scheduled:
            self._schedule()

    def _schedule(self) -> None:
        self._is_scheduled = True
        asyncio.get_running_loop().call_soon(self._give_slice)

    def _give_slice(self) -> None:
        account = self._rotation.popleft()
        self._is_scheduled = False
        if self._rotation:
            self._schedule()
        started = loop_time()
        if account.is_overdrawn(started):
            # Other work of the same client used up its time meanwhile.
            self._enqueue(account)
            return
        try:
            account.waiting.popleft()()
        finally:
            account.charge(loop_time() - started, loop_time())
            account.is_queued = False
            if account.waiting:
                self._enqueue(account)


class _Account:
    """A client's time: what is left of it in seconds, less than none if it used more; and its work that waits."""

    __slots__ = ("_left", "_share", "_updated_at", "is_queued", "waiting")

    def __init__(self, share: float, now: float) -> None:
        self.waiting: deque[Callable[[], None]] = deque()
        self.is_queued = False
        self._left = BURST_SECONDS
        self._share = share
        self._updated_at = now

    def charge(self, seconds: float, now: float) -> None:
        self._update(now)
        self._left -= seconds

    def is_overdrawn(self, now: float) -> bool:
        self._update(now)
        return self._left < 0

    @property
    def seconds_until_slice(self) -> float:
        """How long it takes until the client has time for a slice."""
        return (SLICE_SECONDS - self._left) / self._share

    def is_unused(self, now: float) -> bool:
        self._update(now)
        return self._left == BURST_SECONDS and not self.is_queued

    def _update(self, now: float) -> None:
        self._left = min(BURST_SECONDS, self._left + (now - self._updated_at) * self._share)
        self._updated_at = now


class _Uncounted(_Account):
    """The account of slices that count for no client."""

    def charge(self, seconds: float, now: float) -> None:
        pass


def loop_time() -> float:
    """The event loop's time, in seconds."""
    return asyncio.get_running_loop().time()


def _run_slice(steps: Steps[Any]) -> None:
    """Run steps for the time of a slice. Raises ``StopIteration`` with the result when they are complete."""
    slice_ends = loop_time() + SLICE_SECONDS
    next(steps)
    while loop_time() < slice_ends:
        next(steps)
