"""Members' requests with answers as large as the group: they wait for room, and give it back when they are parked."""

import asyncio
from typing import Any, cast

from streaming.gateway.groups.large_reads import BYTES_AT_ONCE, PARKED_SECONDS, LargeReads
from streaming.gateway.proxy.admission.answer_memory import AnswerRoom, ConnectionAnswers
from streaming.gateway.proxy.admission.request_memory import RequestMemory
from streaming.gateway.wire.answer_room import current_answer_room
from streaming.gateway.wire.client_request import Caller
from tests.support.virtual_time import run_in_virtual_time

LARGE = 5 * 1024 * 1024
NEVER = 10**6
JOIN = "JoinGroup"


class NoDirectory:
    """A directory without groups."""

    def entry(self, _group_id: str) -> None:
        return None


class Members:
    """Asks for the answers of members, each over a connection and from an address of its own.

    ``open`` are the requests that the coordinator has yet to answer, ``memory`` that of all connections.
    """

    def __init__(self) -> None:
        self.reads = LargeReads(cast("Any", NoDirectory()))
        self.memory = RequestMemory(100 * LARGE)
        self.open: list[str] = []
        self._connections = 0

    async def ask(self, group_id: str, member: str, size: int, seconds: float = 0.1) -> None:
        """Ask for an answer of that size, which the coordinator makes after so many seconds."""
        self._connections += 1
        caller = Caller("client", f"10.0.0.{self._connections}", "User:ANONYMOUS")
        answers = ConnectionAnswers(self.memory, lambda: 0, lambda: 0)
        room = AnswerRoom(answers, lambda: True)
        current_answer_room.set(room.reserve)
        try:
            async with self.reads.member_room(JOIN, caller, group_id, member) as answered:
                self.open.append(group_id)
                try:
                    await asyncio.sleep(seconds)
                finally:
                    self.open.remove(group_id)
                answered(size)
        finally:
            room.release()

    async def ask_all(self, requests: int, seconds: float = 0.1) -> "list[asyncio.Task[None]]":
        """Ask for the large answers of as many groups at the same time."""
        asked = [asyncio.create_task(self.ask(f"group-{n}", "leader", LARGE, seconds)) for n in range(requests)]
        await passes()
        return asked


async def passes() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_the_first_answer_to_a_member_shows_how_large_its_answers_are() -> None:
    async def run() -> None:
        members = Members()
        await asyncio.gather(*await members.ask_all(120))
        again = await members.ask_all(120)
        assert len(members.open) == BYTES_AT_ONCE // LARGE
        assert members.memory.used >= 100 * LARGE
        await asyncio.gather(*again)
        assert members.memory.used == 0

    run_in_virtual_time(run())


def test_while_nothing_is_known_of_a_member_only_few_of_its_requests_are_open() -> None:
    async def run() -> None:
        members = Members()
        asked = [asyncio.create_task(members.ask("group", "leader", LARGE)) for _ in range(120)]
        await passes()
        assert 0 < len(members.open) <= 3
        await asyncio.gather(*asked)

    run_in_virtual_time(run())


def test_new_members_and_those_with_small_answers_wait_for_nobody() -> None:
    async def run() -> None:
        members = Members()
        await asyncio.gather(*await members.ask_all(1))
        waiting = await members.ask_all(120, NEVER)
        before = len(members.open)
        small = [asyncio.create_task(members.ask("large", member, 1)) for member in ("", "", "", "one", "two")]
        await passes()
        assert len(members.open) == before + len(small)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*small, *waiting, return_exceptions=True)

    run_in_virtual_time(run())


def test_an_error_does_not_make_a_leader_forgotten() -> None:
    async def run() -> None:
        members = Members()
        await asyncio.gather(*await members.ask_all(20))
        for number in range(20):
            await members.ask(f"group-{number}", "leader", 100)
        again = await members.ask_all(20)
        assert len(members.open) == BYTES_AT_ONCE // LARGE
        await asyncio.gather(*again)

    run_in_virtual_time(run())


def test_a_request_that_is_parked_gives_its_room_back() -> None:
    async def run() -> None:
        members = Members()
        await asyncio.gather(*await members.ask_all(20))
        parked = await members.ask_all(3, NEVER)
        other = asyncio.create_task(members.ask("group-19", "leader", LARGE))
        await passes()
        assert "group-19" not in members.open
        used = members.memory.used
        await asyncio.sleep(PARKED_SECONDS)
        await passes()
        assert "group-19" in members.open
        assert members.memory.used == used - 3 * LARGE
        for task in parked:
            task.cancel()
        await asyncio.gather(other, *parked, return_exceptions=True)
        assert members.memory.used == 0

    run_in_virtual_time(run())
