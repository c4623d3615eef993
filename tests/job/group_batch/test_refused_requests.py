"""Requests whose step raises are refused, each alone, wherever in the batch they are and however many there are."""

import base64
import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from coordinator_logic.config import LOGIC_VERSION, CoordinatorConfig
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.measures import Increment, MovedBack
from streaming.job.rows.records import MIN_ROW_BYTES, KafkaRecord, SizeLimits
from tests.support.request_events import commit, dumped, envelope

NOW = 1_700_000_000_000
TOPICS = TopicNames()
SETTINGS = Settings(
    TOPICS,
    1,
    CoordinatorConfig(group_initial_rebalance_delay_ms=0),
    limits=SizeLimits(row=MIN_ROW_BYTES),
)
OF_THIS_RELEASE = replace(SETTINGS, config=msgspec.structs.replace(SETTINGS.config, logic_version=LOGIC_VERSION))
REFUSED, ACCEPTED = -1, 0
SIZE = 13


def too_large() -> dict[str, Any]:
    """A JoinGroup whose journal entry does not fit a row."""
    return join(bytes(MIN_ROW_BYTES))


def join(metadata: bytes = b"", member_id: str = "") -> dict[str, Any]:
    timeouts = {"sessionTimeoutMs": 45_000, "rebalanceTimeoutMs": 300_000}
    protocols = [{"name": "range", "metadata": base64.b64encode(metadata).decode()}]
    return envelope(
        "JoinGroup",
        3,
        {"groupId": "g", "memberId": member_id, **timeouts, "protocolType": "consumer", "protocols": protocols},
    )


def sync(member: dict[str, Any], assignments: list[dict[str, str]]) -> dict[str, Any]:
    fields = {"groupId": "g", "memberId": member["memberId"], "generationId": member["generationId"]}
    return envelope("SyncGroup", 3, fields | {"assignments": assignments})


def processed(
    records: dict[int, dict[str, Any]], after: Outcome | None = None, settings: Settings = SETTINGS
) -> Outcome:
    """The outcome of a batch with these requests, by offset."""
    batch = [KafkaRecord(NOW, 0, offset, b"g", dumped(request)) for offset, request in records.items()]
    return process(settings, "g", batch, None if after is None else after.state, NOW)


def values(outcome: Outcome, topic: str) -> list[Any]:
    return [json.loads(row.value or b"") for row in outcome.rows if row.topic == topic]


@pytest.mark.parametrize(
    "refused",
    [{0}, {6}, {SIZE - 1}, {0, SIZE - 1}, {5, 6, 7}, set(range(1, SIZE, 2)), set(range(1, SIZE)), set(range(SIZE))],
    ids=str,
)
def test_a_batch_with_refused_requests_is_like_one_without_them(refused: set[int]) -> None:
    requests = {offset: too_large() if offset in refused else commit("g", offset) for offset in range(SIZE)}
    accepted = {offset: request for offset, request in requests.items() if offset not in refused}
    outcome, without = processed(requests), processed(accepted)
    answers = values(outcome, TOPICS.responses)
    assert [answer["correlationId"] for answer in answers] == [sent["correlationId"] for sent in requests.values()]
    assert [answer["errorCode"] for answer in answers] == [
        REFUSED if offset in refused else ACCEPTED for offset in requests
    ]
    assert [reject["offset"] for reject in values(outcome, TOPICS.rejects)] == sorted(refused)
    assert values(outcome, TOPICS.journal) == values(without, TOPICS.journal)
    assert values(outcome, TOPICS.directory) == values(without, TOPICS.directory)
    assert (outcome.state, outcome.wake_at) == (without.state, without.wake_at)


def test_offsets_that_go_back_are_measured_beside_a_refused_request() -> None:
    outcome = processed({0: commit("g", 5), 1: too_large(), 2: commit("g", 4), 3: commit("g", 4)})
    measured = [row.measure for row in outcome.rows if row.topic == TOPICS.journal]
    assert measured == [None, Increment("offsets_committed", 1), MovedBack("commit", 1, 1), measured[1]]


def test_the_members_hear_at_once_of_assignments_whose_journal_entry_is_too_large() -> None:
    joined = processed({0: join(), 1: join()}, None, OF_THIS_RELEASE)
    bodies = [answer["body"] for answer in values(joined, TOPICS.responses)]
    rejoined = processed({2: join(member_id=bodies[0]["memberId"])}, joined, OF_THIS_RELEASE)
    members = [answer["body"] for answer in values(rejoined, TOPICS.responses)]
    leader, follower = sorted(members, key=lambda member: member["memberId"] != member["leader"])
    large = [{"memberId": leader["memberId"], "assignment": base64.b64encode(bytes(MIN_ROW_BYTES)).decode()}]
    outcome = processed({3: sync(follower, []), 4: sync(leader, large)}, rejoined, OF_THIS_RELEASE)
    assert [answer["errorCode"] for answer in values(outcome, TOPICS.responses)] == [REFUSED, REFUSED]
    assert [reject["offset"] for reject in values(outcome, TOPICS.rejects)] == [4]
    (last,) = values(outcome, TOPICS.directory)
    assert last["groupState"] == "PreparingRebalance"
