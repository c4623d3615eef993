"""Requests that carry long lists: what they ask of the coordinator, and what they leave of the event loop."""

import asyncio
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from kio.index import load_request_schema

from coordinator_logic.groups.consumer.patterns import read_pattern
from coordinator_logic.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    GroupToFetch,
    LeaveGroupRequest,
    LeavingMember,
    Message,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToCommit,
    TopicToCommit,
    TopicToFetch,
)
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.groups.list_requests import (
    EVENTS_OF_A_CLIENT,
    EVENTS_OF_ALL_CLIENTS,
    MAX_ENTRIES,
    MAX_GROUPS,
    ListRequests,
)
from streaming.gateway.wire.client_request import Caller
from streaming.gateway.wire.loop_share import LoopShare
from tests.gateway.support.direct_handlers import connected, direct_handlers
from tests.gateway.support.timeouts import response_timeouts
from tests.support.garbage import without_collections
from tests.support.scripted_coordinator import ScriptedCoordinator
from tests.support.topics import create_topic, unique
from tests.support.virtual_time import run_in_virtual_time
from tests.support.waiting import LIMIT_SECONDS
from tests.support.wire_types import to_wire

LOADING = "coordinator_load_in_progress"
MANY = [f"group-{number}" for number in range(3 * MAX_GROUPS)]


def caller(number: int) -> Caller:
    return Caller(f"client-{number}", f"10.0.0.{number}", "User:ANONYMOUS")


class Coordinator:
    """Answers after some passes of the event loop. ``most_open``: the most requests that were open at once."""

    def __init__(self, passes: int) -> None:
        self._passes = passes
        self.asked: list[str] = []
        self.open = 0
        self.most_open = 0

    async def ask(self, group_id: str) -> str:
        self.asked.append(group_id)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        for _ in range(self._passes):
            await asyncio.sleep(0)
        self.open -= 1
        return group_id.upper()


def test_a_long_list_asks_for_a_bounded_number_of_groups_a_few_at_a_time() -> None:
    coordinator = Coordinator(2 * EVENTS_OF_A_CLIENT)

    async def ask() -> dict[str, str]:
        return await ListRequests(LoopShare()).ask_each(caller(1), [*MANY, *MANY], coordinator.ask, LIMIT_SECONDS)

    results = run_in_virtual_time(ask())
    assert coordinator.asked == MANY[:MAX_GROUPS]
    assert results == {group_id: group_id.upper() for group_id in MANY[:MAX_GROUPS]}
    assert coordinator.most_open == EVENTS_OF_A_CLIENT


def test_the_lists_of_all_clients_together_have_a_bounded_number_of_events() -> None:
    coordinator = Coordinator(2 * EVENTS_OF_ALL_CLIENTS)

    async def ask() -> None:
        lists = ListRequests(LoopShare())
        clients = EVENTS_OF_ALL_CLIENTS // EVENTS_OF_A_CLIENT + 2
        asking = [lists.ask_each(caller(n), MANY[:100], coordinator.ask, LIMIT_SECONDS) for n in range(clients)]
        assert all(len(results) == 100 for results in await asyncio.gather(*asking))

    run_in_virtual_time(ask())
    assert coordinator.most_open == EVENTS_OF_ALL_CLIENTS


def test_the_event_loop_runs_between_any_two_events_of_a_list() -> None:
    async def ask() -> list[int]:
        passes = 0
        seen: list[int] = []

        async def count_passes() -> None:
            nonlocal passes
            while True:
                await asyncio.sleep(0)
                passes += 1

        async def ask_at_once(_group_id: str) -> None:
            seen.append(passes)

        counting = asyncio.create_task(count_passes())
        await ListRequests(LoopShare()).ask_each(caller(1), MANY, ask_at_once, LIMIT_SECONDS)
        counting.cancel()
        return seen

    seen = asyncio.run(ask())
    assert len(set(seen)) == len(seen) == MAX_GROUPS


def test_the_event_loop_runs_while_a_pattern_is_matched() -> None:
    names = [f"{number:04}".ljust(249, "x") for number in range(200)]

    async def match() -> tuple[list[str], int]:
        passes = 0

        async def count_passes() -> None:
            nonlocal passes
            while True:
                await asyncio.sleep(0)
                passes += 1

        counting = asyncio.create_task(count_passes())
        # RE2 can keep the states for so large a pattern for few names only.
        found = await ListRequests(LoopShare(1.0)).only(
            caller(1), names, read_pattern(".*1.{200}|.*2.{201}|.*x.{202}").matches
        )
        counting.cancel()
        return found, passes

    found, passes = asyncio.run(match())
    assert found == names
    assert passes > len(names) / 10


def test_groups_without_a_result_in_time_are_left_out() -> None:
    async def ask() -> dict[str, str]:
        async def answers_the_first(group_id: str) -> str:
            if group_id != MANY[0]:
                await asyncio.Event().wait()
            return group_id

        return await ListRequests(LoopShare()).ask_each(caller(1), MANY, answers_the_first, 0.2)

    assert asyncio.run(ask()) == {MANY[0]: MANY[0]}


@pytest.mark.parametrize("ends_by", ["its time", "a cancellation"])
def test_a_list_whose_time_is_over_or_whose_client_is_gone_is_freed_without_a_collection(ends_by: str) -> None:
    class Groups(list[str]):
        """A list that can be referred to weakly."""

    async def ask(groups: Groups, seconds: float) -> None:
        async def never_answered(_group_id: str) -> None:
            assert groups
            await asyncio.Event().wait()

        await ListRequests(LoopShare()).ask_each(caller(1), groups, never_answered, seconds)

    async def left() -> Groups | None:
        groups = Groups(MANY)
        reference = weakref.ref(groups)
        asking = asyncio.create_task(ask(groups, 0.1 if ends_by == "its time" else LIMIT_SECONDS))
        del groups
        if ends_by == "a cancellation":
            await asyncio.sleep(0.1)
            asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        del asking
        await asyncio.sleep(0.1)
        return reference()

    with without_collections():
        assert run_in_virtual_time(left()) is None


@pytest.fixture
def scripted(broker: EmbeddedBroker) -> Iterator[ScriptedCoordinator]:
    coordinator = ScriptedCoordinator(broker.bootstrap_servers)
    yield coordinator
    coordinator.close()


def ask_all(broker: EmbeddedBroker, scripted: ScriptedCoordinator, *requests: tuple[Message, int, int]) -> list[Any]:
    """Send requests (body, API key, version) one after the other to a coordinator that does not answer."""

    async def ask() -> list[Any]:
        serving = direct_handlers(broker.bootstrap_servers, scripted.topics, timeouts=response_timeouts(2.0))
        async with asyncio.timeout(LIMIT_SECONDS), serving as handlers:
            await connected(handlers.channel)
            responses = []
            for body, key, version in requests:
                responses.append(await handlers.ask(to_wire(body, load_request_schema(key, version))))
                assert handlers.channel.outstanding <= EVENTS_OF_A_CLIENT
            return responses

    return asyncio.run(ask())


def test_every_group_of_a_long_list_has_an_entry_that_clients_retry(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator
) -> None:
    groups = [GroupToFetch(group_id, [TopicToFetch("topic", [0])]) for group_id in MANY]
    described, fetched, deleted = ask_all(
        broker,
        scripted,
        (DescribeGroupsRequest(MANY), 15, 5),
        (OffsetFetchRequest(groups=groups), 9, 8),
        (DeleteGroupsRequest(MANY), 42, 2),
    )
    for entries in (described.groups, fetched.groups, deleted.results):
        assert [entry.group_id for entry in entries] == MANY
        assert {entry.error_code.name for entry in entries} == {LOADING}


def test_equal_entries_of_an_offset_fetch_are_asked_once_and_answered_once(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator
) -> None:
    # The offsets of a topic that does not exist would be left out of those of all topics.
    topic = unique("first")
    create_topic(broker.bootstrap_servers, topic, 1)
    first, all_topics = GroupToFetch("group", [TopicToFetch(topic, [0])]), GroupToFetch("group")
    fetch = to_wire(OffsetFetchRequest(groups=[first, all_topics, first]), load_request_schema(9, 8))

    def answer_next() -> None:
        request = scripted.request("OffsetFetch")
        (group,) = msgspec.json.decode(request.body, type=OffsetFetchRequest).groups
        offset = 2 if group.topics is None else 1
        fetched = FetchedGroup("group", [FetchedTopic(topic, [FetchedPartition(0, offset)])])
        scripted.answer(request, OffsetFetchResponse(groups=[fetched]))

    async def ask() -> tuple[Any, int]:
        serving = direct_handlers(broker.bootstrap_servers, scripted.topics, timeouts=response_timeouts())
        async with asyncio.timeout(LIMIT_SECONDS), serving as handlers:
            await connected(handlers.channel)
            asking = asyncio.create_task(handlers.ask(fetch))
            for _ in range(2):
                await asyncio.to_thread(answer_next)
            response = await asking
            return response, handlers.channel.outstanding

    response, outstanding = asyncio.run(ask())
    offsets = [group.topics[0].partitions[0].committed_offset for group in response.groups]
    assert (offsets, outstanding) == ([1, 2], 0)


def test_a_request_with_more_entries_than_an_event_can_hold_is_refused_as_a_whole(
    broker: EmbeddedBroker, scripted: ScriptedCoordinator
) -> None:
    numbers = range(MAX_ENTRIES + 1)
    commit = OffsetCommitRequest(
        "group", [TopicToCommit("topic", [PartitionToCommit(number, 1) for number in numbers])]
    )
    fetch = [TopicToFetch("topic", list(numbers))]
    committed, fetched, fetched_groups, left = ask_all(
        broker,
        scripted,
        (commit, 8, 8),
        (OffsetFetchRequest("group", fetch), 9, 7),
        (OffsetFetchRequest(groups=[GroupToFetch("group", fetch)]), 9, 8),
        (LeaveGroupRequest("group", members=[LeavingMember(str(number)) for number in numbers]), 13, 5),
    )
    refused = {"invalid_request"}
    assert {partition.error_code.name for partition in committed.topics[0].partitions} == refused
    assert len(committed.topics[0].partitions) == len(numbers)
    assert {fetched.error_code.name, *(each.error_code.name for each in fetched.topics[0].partitions)} == refused
    assert fetched_groups.groups[0].error_code.name == left.error_code.name == "invalid_request"
