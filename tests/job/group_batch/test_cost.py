"""What a batch costs a group, in calls of Python functions: they are the same on every machine, unlike times.

The limits are a twelfth or less above what was counted with Python 3.11. A change that exceeds one should be worth it:
heartbeats are most of what the job does.
"""

import base64
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coordinator_logic.config import CoordinatorConfig
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import MIN_ROW_BYTES, KafkaRecord, SizeLimits
from tests.support.garbage import without_collections
from tests.support.request_events import commit, dumped, envelope

GROUP_ID, NOW = "group", 1_700_000_000_000
TOPICS = TopicNames()
SETTINGS = Settings(
    TOPICS,
    response_partitions=1,
    config=CoordinatorConfig(group_initial_rebalance_delay_ms=0, late_answer_ms=2_000, requests_partitions=1),
    has_deadline_checks=True,
)


class StableGroup:
    """A group of so many members that has its assignments."""

    def __init__(self, members: int) -> None:
        self._next_offset = 0
        self.stored: StateRow | None = None
        first = self._answers(self.join(), at=NOW)[0]["body"]["memberId"]
        joins = [*(self.join() for _ in range(members - 1)), self.join(first)]
        joined = [answer["body"] for answer in self._answers(*joins, at=NOW)]
        self.generation, leader = joined[0]["generationId"], joined[0]["leader"]
        self.members = [answer["memberId"] for answer in joined]
        assignments = [{"memberId": member, "assignment": ""} for member in self.members]
        for member in self.members:
            self._answers(self.sync(member, assignments if member == leader else []), at=NOW)
        self._answers(*map(self.heartbeat, self.members), at=NOW + 10_000)

    def join(self, member_id: str = "", metadata: bytes = b"") -> dict[str, Any]:
        timeouts = {"sessionTimeoutMs": 45_000, "rebalanceTimeoutMs": 300_000}
        protocols = [{"name": "range", "metadata": base64.b64encode(metadata).decode()}]
        listed = {"protocolType": "consumer", "protocols": protocols}
        return envelope("JoinGroup", 3, {"groupId": GROUP_ID, "memberId": member_id, **timeouts, **listed})

    def sync(self, member_id: str, assignments: list[dict[str, str]]) -> dict[str, Any]:
        return envelope("SyncGroup", 3, self._of_member(member_id) | {"assignments": assignments})

    def heartbeat(self, member_id: str) -> dict[str, Any]:
        return envelope("Heartbeat", 3, self._of_member(member_id))

    def commit(self, member_id: str) -> dict[str, Any]:
        sent = commit(GROUP_ID, 42)
        sent["body"] |= {"memberId": member_id, "generationIdOrMemberEpoch": self.generation}
        return sent

    def calls_in_batch(self, *requests: dict[str, Any], settings: Settings = SETTINGS) -> int:
        """The calls of Python functions in a batch with these requests."""
        records = self._records(requests, NOW + 20_000)
        return calls(lambda: process(settings, GROUP_ID, records, self.stored, NOW + 20_100))

    def _of_member(self, member_id: str) -> dict[str, Any]:
        return {"groupId": GROUP_ID, "memberId": member_id, "generationId": self.generation}

    def _answers(self, *requests: dict[str, Any], at: int) -> list[dict[str, Any]]:
        outcome = process(SETTINGS, GROUP_ID, self._records(requests, at), self.stored, at)
        self.stored = outcome.state
        return [json.loads(row.value or b"") for row in outcome.rows if row.topic == TOPICS.responses]

    def _records(self, requests: tuple[dict[str, Any], ...], at: int) -> list[KafkaRecord]:
        first = self._next_offset
        self._next_offset += len(requests)
        key = GROUP_ID.encode()
        return [KafkaRecord(at, 0, first + number, key, dumped(request)) for number, request in enumerate(requests)]


def calls(function: Callable[[], object]) -> int:
    """How many Python functions it calls, with itself."""
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    before = sys.getprofile()
    # A collection calls whatever other packages have put into gc.callbacks (hypothesis does), and comes when it likes.
    with without_collections():
        sys.setprofile(count)
        try:
            function()
        finally:
            sys.setprofile(before)
    return counted


@pytest.fixture(scope="module")
def of_one() -> StableGroup:
    return StableGroup(1)


@pytest.fixture(scope="module")
def of_200() -> StableGroup:
    return StableGroup(200)


def test_a_batch_without_requests_costs_a_group_few_calls(of_one: StableGroup) -> None:
    assert of_one.calls_in_batch() <= 54


def test_a_heartbeat_costs_few_calls(of_one: StableGroup) -> None:
    assert of_one.calls_in_batch(of_one.heartbeat(of_one.members[0])) <= 97


def test_a_heartbeat_costs_a_large_group_no_more_calls(of_one: StableGroup, of_200: StableGroup) -> None:
    in_small = of_one.calls_in_batch(of_one.heartbeat(of_one.members[0]))
    assert of_200.calls_in_batch(of_200.heartbeat(of_200.members[-1])) == in_small


def test_each_further_heartbeat_of_a_batch_costs_few_calls(of_200: StableGroup) -> None:
    heartbeats = [of_200.heartbeat(member) for member in of_200.members]
    assert of_200.calls_in_batch(*heartbeats) - of_200.calls_in_batch(heartbeats[0]) <= 36 * 199


def test_a_commit_costs_few_calls(of_one: StableGroup) -> None:
    assert of_one.calls_in_batch(of_one.commit(of_one.members[0])) <= 140


def test_only_the_first_join_of_a_batch_costs_calls_for_each_member(of_one: StableGroup, of_200: StableGroup) -> None:
    first_join = of_200.calls_in_batch(of_200.join())
    assert first_join - of_one.calls_in_batch(of_one.join()) <= 6 * 199
    assert of_200.calls_in_batch(of_200.join(), of_200.join()) - first_join <= 200


def test_a_refused_request_does_not_make_the_cost_of_a_batch_quadratic() -> None:
    """Each first join makes the group larger, so a step for each of them would cost sixteen times as many calls."""
    settings = replace(SETTINGS, limits=SizeLimits(row=MIN_ROW_BYTES))

    def calls_with_refused(joins: int) -> int:
        group = StableGroup(1)
        too_large = group.join(metadata=bytes(MIN_ROW_BYTES))
        requests = [group.join() for _ in range(joins)]
        return group.calls_in_batch(*requests, too_large, *requests, settings=settings)

    assert calls_with_refused(400) <= 6 * calls_with_refused(100)
