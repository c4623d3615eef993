"""ListGroups shows what was answered before it, at the gateway that has answered and at another one."""

import asyncio
from typing import Any

import pytest
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.types import GroupId

from streaming.client.coordinator_client import CoordinatorClient
from tests.gateway.support.conversations import Conversation
from tests.gateway.support.direct_handlers import DirectHandlers, direct_handlers, wait_connected
from tests.gateway.support.timeouts import response_timeouts
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.parameters.long_tests import mostly_long
from tests.support.topics import unique

ROUNDS = 10
VERSION = 3
"""No member id is required for the first join, and LeaveGroup names members."""


async def state_at(handlers: DirectHandlers, group_id: str) -> str | None:
    """The state in which ListGroups shows a group; None if it does not list it."""
    answer = await handlers.ask(ListGroupsRequest(states_filter=(), types_filter=()))
    assert answer.error_code.name == "none"
    return next((each.group_state for each in answer.groups if each.group_id == group_id), None)


async def round_of(first: DirectHandlers, second: DirectHandlers) -> list[Any]:
    """A member joins, syncs and leaves, and its group is deleted; both gateways list it after each answer."""
    group_id = unique("listed")
    member, seen = Conversation(first.ask, VERSION, group_id), []

    async def look() -> None:
        seen.append(tuple(await asyncio.gather(state_at(first, group_id), state_at(second, group_id))))

    joined = await member.joined("client")
    await look()
    await member.ask("SyncGroup", member.sync_request(joined, {joined.member_id: b"a"}))
    await look()
    await member.ask("LeaveGroup", member.leave_request(joined.member_id))
    await look()
    await first.ask(DeleteGroupsRequest(groups_names=(GroupId(group_id),)))
    await look()
    return seen


def test_both_gateways_list_what_one_has_answered(coordinator: CoordinatorProcess) -> None:
    async def play() -> list[list[Any]]:
        servers, topics, timeouts = coordinator.bootstrap_servers, coordinator.topics, response_timeouts()
        async with (
            direct_handlers(servers, topics, timeouts=timeouts) as first,
            direct_handlers(servers, topics, timeouts=timeouts) as second,
        ):
            await wait_connected(first)
            await wait_connected(second)
            return list(await asyncio.gather(*[round_of(first, second) for _ in range(ROUNDS)]))

    states = ["CompletingRebalance", "Stable", "Empty", None]
    for seen in asyncio.run(play()):
        assert seen == [(state, state) for state in states]


@pytest.mark.parametrize("number", mostly_long(range(3), [0]))
def test_a_client_lists_what_it_was_answered(coordinator: CoordinatorProcess, number: int) -> None:
    group_id = unique(f"listed-{number}")
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as client:

        def is_listed() -> bool:
            return group_id in {group.group_id for group in client.list_groups().groups}

        client.set_group_config(group_id, {"consumer.session.timeout.ms": "50000"})
        assert is_listed()
        client.delete_groups([group_id])
        assert not is_listed()
