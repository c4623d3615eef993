"""Bounds of what the coordinator has to answer at once, for one address and for all together.

A batch of the job makes all of its answers before its next one begins. An answer is as large as its group: while the
job makes a hundred answers of megabytes, the commits of everybody else wait. So a request whose answer may be large
waits here until there is room for it among those that the coordinator has yet to answer.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from msgspec import UNSET

from streaming.client.directory import GroupDirectory
from streaming.gateway.groups.read_budget import ReadBudget
from streaming.gateway.wire.answer_room import ASSIGNMENT_BYTES, NoAnswerRoom, await_answer_room
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

PARKED_SECONDS = 2.0
"""A member's request without an answer by then is parked: a few batches have passed. It must not keep the room until
the other members have sent theirs, and these are together as large as the answer."""

MAX_KNOWN_ANSWERS = 10_000

Answered = Callable[[int], None]
"""To be called with the bytes that the answer has."""

Room = AbstractAsyncContextManager[Answered]
"""Waits for room for an answer, and keeps it while its block runs. Raises :class:`NoAnswerRoom`."""


def _settle_nothing(_size: int) -> None:
    pass


async def enter_room(stack: AsyncExitStack, room: Room, seconds: float) -> Answered | None:
    """Wait so many seconds at most for a room, which the stack then keeps; None if there is none."""
    try:
        async with asyncio.timeout(seconds):
            return await stack.enter_async_context(room)
    except (TimeoutError, NoAnswerRoom):
        return None


class LargeReads:
    """Admits the requests of the gateway's clients whose answers are as large as a group."""

    def __init__(self, directory: GroupDirectory) -> None:
        self._directory = directory
        self._large = ReadBudget(BYTES_AT_ONCE, BYTES_OF_AN_ADDRESS)
        self._small = ReadBudget(SMALL_BYTES_AT_ONCE, SMALL_BYTES_AT_ONCE // 2)
        self._answered: OrderedDict[tuple[str, ...], int] = OrderedDict()
        self._in_flight: Counter[tuple[str, ...]] = Counter()

    @asynccontextmanager
    async def room(
        self,
        api: str,
        caller: Caller,
        group_id: str,
        most: int | None = None,
        repeated: int = 0,
        *,
        is_for_client: bool = True,
    ) -> AsyncIterator[Answered]:
        """Wait for room for a group's answer, in the client's connection and then at the coordinator.

        most: the bytes of the answer at most, if the request says what it wants of the group.
        repeated: the bytes that it has more at most, because the request says so several times.
        is_for_client: whether the client gets the answer; one for the gateway itself needs no room in a connection.
        """
        known = self._known_bytes(api, group_id)
        size = max(known, LARGE_ANSWER_BYTES)
        if most is not None:
            size = min(size, max(1, most if known else most // WORST_TO_TYPICAL))
        size += repeated
        settle = await await_answer_room(size) if is_for_client else _settle_nothing
        is_large = size > LARGE_ANSWER_BYTES
        budget, weight = (self._large, size) if is_large else (self._small, min(size, SMALL_ANSWER_BYTES))

        def answered(actual: int) -> None:
            settle(actual)
            if most is None:
                self._remember((api, group_id), actual)

        async with budget.room(caller.host, weight):
            yield answered

    @asynccontextmanager
    async def member_room(self, api: str, caller: Caller, group_id: str, member: str) -> AsyncIterator[Answered]:
        """Wait for room for the answer to a member's request, which may be parked until others have sent theirs.

        It may be as large as the largest one so far: one member gets the metadata of all. As long as none is known,
        a further request of the member counts as the largest one of all.

        member: its instance id or its member id; empty for one that has neither yet.
        """
        key = (api, group_id, member)
        size = self._answered.get(key, 0)
        if not size and member and self._in_flight[key]:
            size = BYTES_OF_AN_ADDRESS
        self._in_flight[key] += 1
        try:
            async with self._parking_room(caller, size) as settle:

                def answered(actual: int) -> None:
                    settle(actual)
                    # A small answer tells nothing: any client can have an error.
                    if member and actual > LARGE_ANSWER_BYTES:
                        self._remember(key, actual)

                yield answered
        finally:
            self._in_flight[key] -= 1
            if not self._in_flight[key]:
                del self._in_flight[key]

    @asynccontextmanager
    async def _parking_room(self, caller: Caller, size: int) -> AsyncIterator[Answered]:
        """Wait for room for ``size`` bytes, 0 if the answer is not known to be large; keep it until it is parked."""
        if not size:
            yield await await_answer_room(ASSIGNMENT_BYTES, may_park=True)
            return
        settle = await await_answer_room(size)
        async with self._large.room(caller.host, size) as give_back:

            def park() -> None:
                settle(0)
                give_back()

            parking = asyncio.get_running_loop().call_later(PARKED_SECONDS, park)
            try:
                yield settle
            finally:
                parking.cancel()

    def _remember(self, key: tuple[str, ...], size: int) -> None:
        """Remember the size of an answer: entries of the directory that earlier releases wrote have none."""
        self._answered.pop(key, None)
        if size > LARGE_ANSWER_BYTES:
            self._answered[key] = size
            if len(self._answered) > MAX_KNOWN_ANSWERS:
                self._answered.popitem(last=False)

    def _known_bytes(self, api: str, group_id: str) -> int:
        """How large a group's answer may be as far as that is known; 0 if it is not."""
        entry = self._directory.entry(group_id)
        stored = 0 if entry is None or entry.stored_bytes is UNSET else entry.stored_bytes
        answered = self._answered.get((api, group_id), 0)
        # The directory has a power of two, up to twice the group's size.
        return max(answered, stored // 2) if answered else stored
