"""Requests whose answers are as large as a group: few at once, and nobody else waits for them."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, cast

import pytest

from coordinator_logic.messages import TopicToFetch
from coordinator_logic.records import GroupDirectoryEntry
from streaming.gateway.groups.handlers.offset_fetch import MOST_OFFSET_BYTES, offset_bytes
from streaming.gateway.groups.large_reads import BYTES_AT_ONCE, BYTES_OF_AN_ADDRESS, LargeReads
from streaming.gateway.groups.read_budget import ReadBudget
from streaming.gateway.wire.client_request import Caller

LARGE = 5 * 1024 * 1024
DESCRIBE = "DescribeGroups"


class Directory:
    """Entries of groups with the size that a group's id names."""

    def entry(self, group_id: str) -> GroupDirectoryEntry | None:
        kind, _, size = group_id.partition(":")
        if not size:
            return None
        return GroupDirectoryEntry(kind, "Stable", "classic", "consumer", 1, 1, stored_bytes=int(size))


def caller(number: int) -> Caller:
    return Caller("client", f"10.0.0.{number}", "User:ANONYMOUS")


class Coordinator:
    """Counts the bytes of the answers that it has yet to make, and makes one in each pass of the event loop."""

    def __init__(self, reads: LargeReads) -> None:
        self._reads = reads
        self.open = self.most_open = self.answered = 0
        self.makes = asyncio.Event()

    async def read(self, number: int, group_id: str, size: int, most: int | None = None, repeated: int = 0) -> None:
        async with self._reads.room(DESCRIBE, caller(number), group_id, most, repeated) as answered:
            self.open += size
            self.most_open = max(self.most_open, self.open)
            await self.makes.wait()
            self.open -= size
            self.answered += 1
            answered(size)


def reads() -> LargeReads:
    return LargeReads(cast("Any", Directory()))


async def passes() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_large_groups_are_read_a_few_at_a_time_and_all_of_them() -> None:
    async def run() -> None:
        coordinator = Coordinator(reads())
        work = [asyncio.create_task(coordinator.read(n % 20, f"group-{n}:{LARGE}", LARGE)) for n in range(120)]
        await passes()
        assert 0 < coordinator.open <= BYTES_AT_ONCE
        coordinator.makes.set()
        await asyncio.gather(*work)
        assert coordinator.most_open <= BYTES_AT_ONCE
        assert coordinator.answered == 120

    asyncio.run(run())


@pytest.mark.parametrize(
    ("group_id", "most"),
    [("small", None), (f"large:{LARGE}", 4_200)],
    ids=["a small group", "some offsets of a large group"],
)
def test_what_is_small_waits_for_no_large_group(group_id: str, most: int | None) -> None:
    async def run() -> None:
        coordinator = Coordinator(reads())
        work = [asyncio.create_task(coordinator.read(n % 20, f"group-{n}:{LARGE}", LARGE)) for n in range(120)]
        await passes()
        before = coordinator.open
        work.append(asyncio.create_task(coordinator.read(1, group_id, 1, most)))
        await passes()
        assert coordinator.open == before + 1
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    asyncio.run(run())


def test_many_smaller_groups_are_bounded_too() -> None:
    async def run() -> None:
        size = BYTES_AT_ONCE // 64
        coordinator = Coordinator(reads())
        work = [asyncio.create_task(coordinator.read(n % 20, f"group-{n}:{size}", size)) for n in range(1_000)]
        await passes()
        assert coordinator.open == BYTES_AT_ONCE
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    asyncio.run(run())


def test_a_partition_that_a_request_names_again_counts_each_time() -> None:
    async def run() -> None:
        coordinator = Coordinator(reads())
        most, repeated = offset_bytes([TopicToFetch("orders", [0] * 1_000), TopicToFetch("orders", [0])])
        size = MOST_OFFSET_BYTES * 1_000
        assert (most, repeated) == (size + MOST_OFFSET_BYTES, size)
        work = [asyncio.create_task(coordinator.read(n, "small", size, most, repeated)) for n in range(20)]
        await passes()
        assert coordinator.open == BYTES_AT_ONCE // size * size
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    asyncio.run(run())


def test_a_group_whose_size_the_directory_lacks_is_known_from_its_last_answer() -> None:
    async def run() -> None:
        coordinator = Coordinator(reads())
        coordinator.makes.set()
        await coordinator.read(1, "large", LARGE)
        coordinator.makes.clear()
        work = [asyncio.create_task(coordinator.read(n, "large", LARGE)) for n in range(20)]
        await passes()
        assert coordinator.open <= BYTES_AT_ONCE
        coordinator.makes.set()
        await asyncio.gather(*work)

    asyncio.run(run())


def test_an_answer_says_more_exactly_how_large_a_group_is_than_the_directory() -> None:
    async def run() -> None:
        coordinator, group_id = Coordinator(reads()), f"group:{8 * 1024 * 1024}"
        coordinator.makes.set()
        await coordinator.read(1, group_id, LARGE)
        coordinator.makes.clear()
        work = [asyncio.create_task(coordinator.read(n, group_id, LARGE)) for n in range(20)]
        await passes()
        assert coordinator.open == BYTES_AT_ONCE // LARGE * LARGE
        coordinator.makes.set()
        await asyncio.gather(*work)

    asyncio.run(run())


async def kept(budget: ReadBudget, address: str, size: int, order: list[str], until: asyncio.Event) -> None:
    async with budget.room(address, size):
        order.append(address)
        await until.wait()


def started(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    return asyncio.create_task(work)


def test_addresses_take_turns_and_none_has_more_than_its_part() -> None:
    async def run() -> None:
        budget, order = ReadBudget(BYTES_AT_ONCE, BYTES_OF_AN_ADDRESS), list[str]()
        until = [asyncio.Event() for _ in range(6)]
        work = [started(kept(budget, "a", BYTES_OF_AN_ADDRESS, order, each)) for each in until[:3]]
        work += [started(kept(budget, "b", BYTES_OF_AN_ADDRESS, order, each)) for each in until[3:]]
        await passes()
        assert order == ["a", "b"]
        for number in (0, 3, 1, 4, 2, 5):
            until[number].set()
            await passes()
        await asyncio.gather(*work)
        assert order == ["a", "b", "a", "b", "a", "b"]
        assert budget.used == 0

    asyncio.run(run())


def test_an_answer_larger_than_all_room_has_its_turn_alone() -> None:
    async def run() -> None:
        budget, order = ReadBudget(BYTES_AT_ONCE, BYTES_OF_AN_ADDRESS), list[str]()
        first, huge, last = asyncio.Event(), asyncio.Event(), asyncio.Event()
        work = [started(kept(budget, "first", 1, order, first)), started(kept(budget, "huge", 10**9, order, huge))]
        await passes()
        work.append(started(kept(budget, "last", 1, order, last)))
        await passes()
        assert order == ["first"]
        first.set()
        await passes()
        assert order == ["first", "huge"]
        huge.set()
        last.set()
        await asyncio.gather(*work)
        assert order == ["first", "huge", "last"]

    asyncio.run(run())


@pytest.mark.parametrize("is_admitted", [False, True])
def test_a_request_that_is_cancelled_leaves_its_room_to_the_others(is_admitted: bool) -> None:
    async def run() -> None:
        budget, order, until = ReadBudget(10, 10), list[str](), asyncio.Event()
        holds = started(kept(budget, "holds", 10, order, until))
        await passes()
        waits = started(kept(budget, "waits", 10, order, until))
        other = started(kept(budget, "other", 10, order, until))
        await passes()
        if is_admitted:
            until.set()
            while budget.used and not holds.done():
                await asyncio.sleep(0)
        waits.cancel()
        with suppress(asyncio.CancelledError):
            await waits
        until.set()
        await asyncio.gather(holds, other)
        assert order == ["holds", "other"]
        assert budget.used == 0

    asyncio.run(run())
