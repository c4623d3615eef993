"""Bounds and shares of requests that carry lists: however long a list, no other client may notice it.

The gateway asks the coordinator for a bounded number of groups on behalf of one request, and has a bounded number of
such request events outstanding for each client and for all of them together. So no client can fill the producer's queue
with its lists, or the job's next batch.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Sequence
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from streaming.gateway.wire.client_request import Caller
from streaming.gateway.wire.loop_share import LoopShare
from streaming.gateway.wire.steps import LazyList, Steps

MAX_GROUPS = 1_000
"""Different groups for which one request asks the coordinator. The others are answered with an error after which Java's
admin client asks for these groups again, so that a longer list takes it several requests."""

MAX_ENTRIES = 10_000
"""Partitions, members, protocols or assignments of one request event. As JSON, more of them would exceed the megabyte
that a record of the topics has by default."""

MAX_REQUEST_ENTRIES = 2 * MAX_ENTRIES
"""Array entries of a request that becomes an event: :data:`MAX_ENTRIES`, which may be in as many topics. The gateway
refuses a larger one before it reads it: to make and to free 100,000 objects holds the loop."""

EVENTS_OF_A_CLIENT = 50
EVENTS_OF_ALL_CLIENTS = 500
"""Outstanding request events of requests for several groups; a job answers as many with each of its batches."""

EVENT_SECONDS = 0.0003
"""What a request event and its response take of the event loop's time, with what the client's threads do for them."""

KeyT = TypeVar("KeyT", bound=Hashable)
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class ListRequests:
    """Asks for the groups of a list, a few at a time."""

    def __init__(self, loop_share: LoopShare) -> None:
        self.loop_share = loop_share
        self._all_clients = asyncio.Semaphore(EVENTS_OF_ALL_CLIENTS)
        self._clients: WeakValueDictionary[Caller, asyncio.Semaphore] = WeakValueDictionary()
        """For the events of each client, as long as one of its requests refers to it."""

    async def ask_each(
        self,
        caller: Caller,
        keys: Iterable[KeyT],
        ask: Callable[[KeyT], Awaitable[ResultT]],
        seconds: float,
    ) -> dict[KeyT, ResultT]:
        """Call ``ask`` once for each of the first :data:`MAX_GROUPS` different keys, and return the results by key.

        A key beyond them has no result, nor has one whose result is not there after ``seconds``.
        """
        asked = await self.different(caller, keys, MAX_GROUPS)
        waiting = iter(asked)
        results: dict[KeyT, ResultT] = {}

        async def ask_next() -> None:
            of_client = self._clients.setdefault(caller, asyncio.Semaphore(EVENTS_OF_A_CLIENT))
            for key in waiting:
                # First: a client without time left must not keep the events that others could have.
                await self.loop_share.await_slice(caller.quota_entity, EVENT_SECONDS)
                async with of_client, self._all_clients:
                    results[key] = await ask(key)

        if len(asked) == 1:
            results[asked[0]] = await ask(asked[0])
        elif asked:
            await _run_together([ask_next() for _ in asked[:EVENTS_OF_A_CLIENT]], seconds)
        return results

    async def different(self, caller: Caller, keys: Iterable[KeyT], count: int | None = None) -> list[KeyT]:
        """The different keys in their order, the first ``count`` or all."""
        return await self.loop_share.complete(caller, _different(keys, count))

    async def make_each(
        self, caller: Caller, items: Iterable[ItemT], make: Callable[[ItemT], ResultT]
    ) -> list[ResultT]:
        """The results of ``make`` for all items; a long list is made between what else the event loop does."""

        def steps() -> Steps[list[ResultT]]:
            made = []
            for item in items:
                made.append(make(item))
                yield
            return made

        return await self.loop_share.complete(caller, steps())

    async def only(self, caller: Caller, items: Iterable[ItemT], wanted: Callable[[ItemT], bool]) -> list[ItemT]:
        """The items for which ``wanted`` is true, which may take milliseconds for each one."""

        def steps() -> Steps[list[ItemT]]:
            found = []
            for item in items:
                if wanted(item):
                    found.append(item)
                yield
            return found

        return await self.loop_share.complete(caller, steps())


async def _run_together(coroutines: Iterable[Coroutine[Any, Any, None]], seconds: float) -> None:
    """Run the coroutines for so many seconds at most; raises the first exception of one of them.

    A task group would keep the frames of its callers, and with them a long request and its results, as garbage that
    only a full collection finds.
    """
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _different(keys: Iterable[KeyT], count: int | None) -> Steps[list[KeyT]]:
    found: dict[KeyT, None] = {}
    for key in keys:
        found[key] = None
        if len(found) == count:
            break
        yield
    return list(found)


def made_lazily(source: Sequence[ItemT], make: Callable[[ItemT], ResultT]) -> list[ResultT]:
    """The results of ``make`` as a response's list, each made when it is written; see :class:`LazyList`."""
    return cast("list[ResultT]", LazyList(source, make))


def entry_count(topics: Sequence[Any] | None, partitions: str = "partitions") -> int:
    """The number of partitions that topics name, in the field ``partitions``."""
    return sum(len(getattr(topic, partitions)) for topic in topics or ())
