"""The decisions about new groups. The test plays the brokers, the journal and the coordinator as functions."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import PartitionToCommit, TopicToCommit
from streaming.client.errors import CoordinatorNotAvailable
from streaming.gateway.groups.first_contact import contacts as module
from streaming.gateway.groups.first_contact.broker_groups import NOTHING, BrokerGroup, Found, Unanswered
from streaming.gateway.groups.first_contact.contacts import (
    GROUPS_TOGETHER,
    MAX_WAITING_OF_A_CLIENT,
    FirstContacts,
    Outcome,
)
from streaming.gateway.wire.client_request import Caller, QuotaEntity
from tests.support.waiting import LIMIT_SECONDS

CALLER, OTHER = Caller("app", "10.0.0.1", "User:app"), Caller("app", "10.0.0.2", "User:other")
OFFSETS = [TopicToCommit("topic", [PartitionToCommit(0, 7)])]
WITH_OFFSETS, WITH_MEMBERS = BrokerGroup(OFFSETS, has_members=False), BrokerGroup([], has_members=True)
RETRIABLE, FATAL = Error.COORDINATOR_LOAD_IN_PROGRESS, Error.GROUP_AUTHORIZATION_FAILED


class World:
    """The brokers' groups, and the coordinator with its directory and its journal."""

    def __init__(self, *, refuses_offsets: bool = False) -> None:
        self.at_brokers: dict[str, BrokerGroup | Unanswered] = {}
        self.here: dict[str, list[TopicToCommit]] = {}
        self.journal: set[str] = set()
        self.lookups: list[Sequence[str]] = []
        self.outcomes: Counter[str] = Counter()
        self.brokers_answer = asyncio.Event()
        self.brokers_answer.set()
        self.failure: Exception | None = None
        self.charged: Counter[QuotaEntity] = Counter()
        functions = self.find, self.had_before, self.take_over, self.count, self.await_slice
        self.contacts = FirstContacts(self, *functions, refuses_offsets=refuses_offsets)

    def entry(self, group_id: str) -> object | None:
        return self.here.get(group_id)

    def wait_complete(self, timeout: float) -> bool:
        return True

    async def find(self, group_ids: Sequence[str]) -> Found:
        self.lookups.append(list(group_ids))
        await self.brokers_answer.wait()
        if self.failure is not None:
            raise self.failure
        return {group_id: self.at_brokers.get(group_id, NOTHING) for group_id in group_ids}

    def had_before(self, group_ids: Iterable[str]) -> set[str]:
        return self.journal.intersection(group_ids)

    async def take_over(self, group_id: str, offsets: list[TopicToCommit]) -> None:
        if self.failure is not None:
            raise self.failure
        self.here[group_id] = offsets
        self.journal.add(group_id)

    async def await_slice(self, client: QuotaEntity, _seconds: float) -> None:
        self.charged[client] += 1

    def count(self, outcome: str) -> None:
        self.outcomes[outcome] += 1

    async def refusal(self, group_id: str = "billing", caller: Caller = CALLER) -> Error | None:
        return await self.contacts.refusal(group_id, caller)


def in_world(act: Callable[[World], Awaitable[None]], **arguments: Any) -> None:
    async def run() -> None:
        world = World(**arguments)
        try:
            await asyncio.wait_for(act(world), LIMIT_SECONDS)
        finally:
            await world.contacts.close()

    asyncio.run(run())


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another lookup may follow at once."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)


def test_offsets_are_taken_over_before_the_first_request_goes_on_and_once() -> None:
    async def act(world: World) -> None:
        world.at_brokers["billing"] = WITH_OFFSETS
        assert await asyncio.gather(*(world.refusal() for _ in range(5))) == [None] * 5
        assert world.here == {"billing": OFFSETS}
        assert (world.lookups, world.outcomes) == ([["billing"]], {Outcome.TAKEN_OVER: 1})

    in_world(act)


def test_a_group_that_is_here_is_not_looked_up() -> None:
    async def act(world: World) -> None:
        world.here["billing"] = []
        assert await world.refusal() is None
        assert await world.refusal("") is None
        assert not world.lookups

    in_world(act)


def test_a_group_that_is_new_everywhere_is_looked_up_once() -> None:
    async def act(world: World) -> None:
        assert [await world.refusal() for _ in range(3)] == [None] * 3
        assert (world.lookups, world.here) == ([["billing"]], {})
        assert world.charged == {CALLER.quota_entity: 1}, "only the lookup counts as the client's"

    in_world(act)


def test_a_group_that_was_deleted_here_does_not_come_back() -> None:
    async def act(world: World) -> None:
        world.at_brokers["billing"] = WITH_OFFSETS
        await world.refusal()
        del world.here["billing"]
        assert await world.refusal() is None
        assert world.here == {}

    in_world(act)


def test_a_gateway_that_starts_later_finds_in_the_journal_that_the_group_was_here(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def act(world: World) -> None:
        world.at_brokers["billing"] = WITH_OFFSETS
        world.journal.add("billing")
        assert await world.refusal() is None
        assert world.here == {}
        assert world.outcomes == {Outcome.HAD_BEFORE: 1}

    in_world(act)
    assert "this coordinator has had the group" in caplog.text


def test_a_group_with_members_at_the_brokers_is_refused_until_they_are_gone(caplog: pytest.LogCaptureFixture) -> None:
    async def act(world: World) -> None:
        world.at_brokers["billing"] = WITH_MEMBERS
        assert [await world.refusal() for _ in range(2)] == [RETRIABLE] * 2
        assert world.outcomes == {Outcome.HAS_MEMBERS: 2}
        world.at_brokers["billing"] = WITH_OFFSETS
        assert await world.refusal() is None
        assert world.here == {"billing": OFFSETS}

    in_world(act)
    assert (
        caplog.messages[0]
        == "group 'billing': it has members at the brokers; stop them there, then its offsets are taken over"
    )


def test_offsets_are_refused_if_the_option_says_so() -> None:
    async def act(world: World) -> None:
        world.at_brokers = {"billing": WITH_OFFSETS, "busy": WITH_MEMBERS}
        assert [await world.refusal("billing"), await world.refusal("busy")] == [FATAL, RETRIABLE]
        assert await world.refusal("new") is None
        assert world.here == {}

    in_world(act, refuses_offsets=True)


def test_without_the_right_to_look_the_group_is_refused_and_the_log_says_what_is_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def act(world: World) -> None:
        world.at_brokers["billing"] = Unanswered("GROUP_AUTHORIZATION_FAILED", is_denied=True)
        assert await world.refusal() is FATAL

    in_world(act)
    assert "needs Describe on it at the brokers" in caplog.text


@pytest.mark.parametrize(
    "answer", [Unanswered("COORDINATOR_NOT_AVAILABLE"), Unanswered("UNSTABLE_OFFSET_COMMIT"), OSError("refused")]
)
def test_while_the_brokers_do_not_say_clients_try_again(answer: Unanswered | OSError) -> None:
    async def act(world: World) -> None:
        if isinstance(answer, OSError):
            world.failure = answer
        else:
            world.at_brokers["billing"] = answer
        assert await world.refusal() is RETRIABLE
        world.failure, world.at_brokers["billing"] = None, WITH_OFFSETS
        assert await world.refusal() is None
        assert world.here == {"billing": OFFSETS}

    in_world(act)


def test_while_the_coordinator_does_not_answer_clients_try_again() -> None:
    async def act(world: World) -> None:
        world.at_brokers["billing"] = WITH_OFFSETS

        async def fail(_group_id: str, _offsets: list[TopicToCommit]) -> None:
            raise CoordinatorNotAvailable("away")

        world.contacts._take_over = fail
        assert await world.refusal() is RETRIABLE
        world.contacts._take_over = world.take_over
        assert await world.refusal() is None

    in_world(act)


def test_a_journal_that_cannot_be_read_leaves_the_group_undecided() -> None:
    async def act(world: World) -> None:
        world.at_brokers["billing"] = WITH_OFFSETS

        def fail(_group_ids: Iterable[str]) -> set[str]:
            raise CoordinatorNotAvailable("no topic")

        world.contacts._had_before = fail
        assert await world.refusal() is RETRIABLE
        assert world.here == {}

    in_world(act)


def test_a_request_does_not_wait_longer_than_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.05)

    async def act(world: World) -> None:
        world.at_brokers["billing"] = WITH_OFFSETS
        world.brokers_answer.clear()
        assert await world.refusal() is RETRIABLE
        world.brokers_answer.set()
        while await world.refusal() is not None:
            await asyncio.sleep(0.01)
        assert (world.here, len(world.lookups)) == ({"billing": OFFSETS}, 1)

    in_world(act)


def test_invented_groups_are_looked_up_together_and_one_client_has_few_of_them() -> None:
    async def act(world: World) -> None:
        world.brokers_answer.clear()
        asked = [asyncio.create_task(world.refusal(f"group-{i}")) for i in range(3 * MAX_WAITING_OF_A_CLIENT)]
        others = asyncio.create_task(world.refusal("billing", OTHER))
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert {task.result() for task in done} == {RETRIABLE}
        while not world.lookups:
            await asyncio.sleep(0)
        assert len(world.lookups) == 1
        world.brokers_answer.set()
        refusals = Counter(await asyncio.gather(*asked))
        assert refusals == {None: MAX_WAITING_OF_A_CLIENT, RETRIABLE: 2 * MAX_WAITING_OF_A_CLIENT}
        assert await others is None
        assert max(map(len, world.lookups)) == GROUPS_TOGETHER
        assert len(world.lookups) == 1 + MAX_WAITING_OF_A_CLIENT // GROUPS_TOGETHER

    in_world(act)
