"""Requests of members, and what happens to many members at once."""

from collections.abc import Callable, Sequence

import pytest

from coordinator_logic.events import Request
from coordinator_logic.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    SyncGroupRequest,
)
from coordinator_logic.step import StepResult
from tests.logic.driver import DELAY_MS, listing
from tests.logic.linear_cost.batches import (
    GROUP_ID,
    MANY_LARGE,
    MANY_SMALL,
    NOW,
    SESSION_MS,
    Scenario,
    batch,
    grows_linearly,
    request,
    stored,
)
from tests.support.parts import classic


def first_joins(members: int, version: int, *, static: bool = False) -> list[Request]:
    return [
        request(
            "JoinGroup",
            version,
            JoinGroupRequest(
                GROUP_ID,
                SESSION_MS,
                "consumer",
                listing("range", "roundrobin"),
                DELAY_MS,
                group_instance_id=f"instance-{number}" if static else None,
            ),
        )
        for number in range(members)
    ]


def generation(members: int, *, static: bool = False) -> tuple[bytes, list[JoinGroupResponse]]:
    """A group whose members have joined and have not synced, and the answers to their joins; the leader's is last."""
    joined = batch(None, first_joins(members, 5 if static else 3, static=static), NOW + DELAY_MS)
    answers = [answer.body for answer in joined.responses if isinstance(answer.body, JoinGroupResponse)]
    assert len(answers) == members
    return stored(joined), sorted(answers, key=lambda answer: answer.member_id == answer.leader)


def instance_of(number: int, answers: Sequence[JoinGroupResponse]) -> str:
    return answers[number].member_id.rsplit("-", 5)[0]


# ---- scenarios: each prepares a batch of a size and returns it ---------------------------------------------------


def handing_out_member_ids(size: int) -> Callable[[], StepResult]:
    requests = first_joins(size, 9)
    return lambda: batch(None, requests)


def expiry_of_member_ids_that_nobody_used(size: int) -> Callable[[], StepResult]:
    handed_out = stored(batch(None, first_joins(size, 9)))
    expired = batch(handed_out, [], NOW + SESSION_MS + 1_000).group
    assert expired is not None
    assert not classic(expired).pending_joins
    return lambda: batch(handed_out, [], NOW + SESSION_MS + 1_000)


def joins_during_the_initial_delay(size: int) -> Callable[[], StepResult]:
    requests = first_joins(size, 3)
    return lambda: batch(None, requests)


def static_members_that_join(size: int) -> Callable[[], StepResult]:
    requests = first_joins(size, 5, static=True)
    return lambda: batch(None, requests)


def members_that_join_and_complete_a_generation(size: int) -> Callable[[], StepResult]:
    requests = first_joins(size, 3)
    return lambda: batch(None, requests, NOW + DELAY_MS)


def all_members_sync(size: int) -> Callable[[], StepResult]:
    joined, answers = generation(size)
    requests = [
        request("SyncGroup", 3, SyncGroupRequest(GROUP_ID, answer.generation_id, answer.member_id))
        for answer in reversed(answers)
    ]
    return lambda: batch(joined, requests)


def heartbeats_of_static_members(size: int) -> Callable[[], StepResult]:
    joined, answers = generation(size, static=True)
    requests = [
        request("Heartbeat", 4, HeartbeatRequest(GROUP_ID, 1, answer.member_id, instance_of(number, answers)))
        for number, answer in enumerate(answers)
    ]
    return lambda: batch(joined, requests)


def heartbeats_of_fenced_static_members(size: int) -> Callable[[], StepResult]:
    joined, answers = generation(size, static=True)
    requests = [
        request("Heartbeat", 4, HeartbeatRequest(GROUP_ID, 1, "fenced", instance_of(number, answers)))
        for number in range(size)
    ]
    return lambda: batch(joined, requests)


def static_members_that_return(size: int) -> Callable[[], StepResult]:
    joined, _ = generation(size, static=True)
    requests = first_joins(size, 5, static=True)
    return lambda: batch(joined, requests)


def expiry_of_all_sessions(size: int) -> Callable[[], StepResult]:
    joined, answers = generation(size)
    synced = [
        request("SyncGroup", 3, SyncGroupRequest(GROUP_ID, answer.generation_id, answer.member_id))
        for answer in answers
    ]
    stable = stored(batch(joined, synced))
    return lambda: batch(stable, [], NOW + 2 * SESSION_MS)


def all_members_leave_in_one_request(size: int) -> Callable[[], StepResult]:
    joined, answers = generation(size)
    leaving = LeaveGroupRequest(GROUP_ID, members=[LeavingMember(answer.member_id) for answer in answers])
    return lambda: batch(joined, [request("LeaveGroup", 5, leaving)])


def static_members_that_leave_by_their_instance_ids(size: int) -> Callable[[], StepResult]:
    joined, answers = generation(size, static=True)
    leaving = [LeavingMember("", instance_of(number, answers)) for number in range(size)]
    requests = [request("LeaveGroup", 5, LeaveGroupRequest(GROUP_ID, members=[member])) for member in leaving]
    return lambda: batch(joined, requests)


SCENARIOS = (
    joins_during_the_initial_delay,
    static_members_that_join,
    members_that_join_and_complete_a_generation,
    all_members_sync,
    heartbeats_of_static_members,
    heartbeats_of_fenced_static_members,
    static_members_that_return,
    expiry_of_all_sessions,
    all_members_leave_in_one_request,
    static_members_that_leave_by_their_instance_ids,
)


@pytest.mark.parametrize("scenario", [handing_out_member_ids, expiry_of_member_ids_that_nobody_used])
def test_twenty_thousand_member_ids_cost_about_four_times_as_much_as_five_thousand(scenario: Scenario) -> None:
    grows_linearly(scenario, MANY_SMALL, MANY_LARGE)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_four_times_as_many_cost_about_four_times_as_much(scenario: Scenario) -> None:
    grows_linearly(scenario)
