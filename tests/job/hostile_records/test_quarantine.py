"""A quarantined group through the operator: visible in the directory, readable in pages, dropped on request."""

import base64
import json
from typing import Any

import msgspec
import pytest

from coordinator_logic import snapshot
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.handlers.list_groups import list_groups
from coordinator_logic.messages import ListGroupsRequest
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry, fold
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import KafkaRecord
from tests.job.hostile_records.test_totality import damaged_offsets
from tests.support.request_events import commit, dumped, envelope

NOW = 1_000_000
TOPICS = TopicNames()
SETTINGS = Settings(TOPICS, 4, CoordinatorConfig())
UNREADABLE = StateRow(b"\xff" + bytes(range(200)) * 10)


def read(offset: int = 0, length: int = 0) -> dict[str, Any]:
    return envelope("ReadQuarantinedGroup", 0, {"offset": offset, "length": length})


def drop(reason: str = "by hand") -> dict[str, Any]:
    return envelope("DropQuarantinedGroup", 0, {"reason": reason})


def sent(*requests: dict[str, Any], stored: StateRow | None = UNREADABLE, at: int = NOW) -> Outcome:
    records = [KafkaRecord(at + i, 0, i, b"g", dumped(request)) for i, request in enumerate(requests)]
    return process(SETTINGS, "g", records, stored, at + 100)


def values(outcome: Outcome, topic: str) -> list[Any]:
    return [row.value and json.loads(row.value) for row in outcome.rows if row.topic == topic]


def bodies(outcome: Outcome) -> list[Any]:
    return [answer["body"] for answer in values(outcome, TOPICS.responses)]


def commit_error(body: Any) -> int:
    return int(body["topics"][0]["partitions"][0]["errorCode"])


def test_the_directory_says_once_that_a_group_is_quarantined() -> None:
    first = sent(commit("g", 1))
    (line,) = values(first, TOPICS.directory)
    assert (line["groupId"], line["groupState"], line["members"]) == ("g", "Quarantined", 0)
    assert values(sent(commit("g", 1), stored=first.state), TOPICS.directory) == []


def test_kafkas_clients_see_a_quarantined_group_as_dead() -> None:
    (line,) = values(sent(commit("g", 1)), TOPICS.directory)
    entry = msgspec.convert(line, GroupDirectoryEntry)
    for states, listed in (([], ["Dead"]), (["dead"], ["Dead"]), (["Stable"], [])):
        assert [group.group_state for group in list_groups([entry], ListGroupsRequest(states)).groups] == listed


def test_a_release_that_can_read_the_state_continues_the_group_and_corrects_the_directory() -> None:
    whole = sent(commit("g", 7), stored=None).state
    assert whole is not None
    marked = StateRow.unpacked(whole.quarantined().packed())
    continued = sent(envelope("OffsetFetch", 8, {"groups": [{"groupId": "g", "topics": None}]}), stored=marked)
    assert bodies(continued)[0]["groups"][0]["topics"][0]["partitions"][0]["committedOffset"] == 7
    assert [line["groupState"] for line in values(continued, TOPICS.directory)] == ["Empty"]
    assert continued.state is not None
    assert not continued.state.is_quarantined


def test_the_reason_and_the_bytes_can_be_read_in_pages() -> None:
    outcome = sent(read(), read(0, 1_500), read(1_500, 1_500), read(9_999, 5), read(-5, -1))
    shown, first, second, *beyond = bodies(outcome)
    assert shown | {"data": ""} == shown
    assert (shown["formatVersion"], shown["size"]) == (255, len(UNREADABLE.snapshot))
    assert "format version 255" in shown["reason"]
    pages = [base64.b64decode(page["data"]) for page in (first, second)]
    assert b"".join(pages) == UNREADABLE.snapshot
    assert [page["data"] for page in beyond] == ["", ""]
    assert values(outcome, TOPICS.rejects) == [], "no request was refused"


def test_a_dropped_group_works_anew() -> None:
    quarantined = sent(commit("g", 1)).state
    dropping = drop()
    outcome = sent(commit("g", 1), dropping, commit("g", 2), stored=quarantined)
    before, dropped, after = bodies(outcome)
    assert (commit_error(before), dropped["errorCode"], commit_error(after)) == (15, 0, 0)
    first, *_ = entries = values(outcome, TOPICS.journal)
    assert first["record"]["type"] == "QuarantinedStateDropped"
    assert first["record"]["size"] == len(UNREADABLE.snapshot)
    assert first["record"]["reason"] == "by hand"
    assert first["cause"]["correlationId"] == dropping["correlationId"]
    assert [line["groupState"] for line in values(outcome, TOPICS.directory)] == ["Empty"]
    assert outcome.state is not None
    group = snapshot.decode(outcome.state.snapshot)
    assert [committed.offset for _, _, committed in group.committed_offsets()] == [2]
    folded = fold(msgspec.convert(entries, list[JournalEntry]))
    assert folded is not None
    assert folded.offsets == group.offsets


def test_a_drop_leaves_a_tombstone_and_nothing_stored() -> None:
    outcome = sent(drop(), stored=sent(commit("g", 1)).state)
    assert values(outcome, TOPICS.directory) == [None]
    assert outcome.state is None


def test_the_journal_of_a_group_ends_with_the_drop_of_its_state() -> None:
    lived = values(sent(commit("g", 1), stored=None), TOPICS.journal)
    dropped = values(sent(drop(), at=NOW + 1_000), TOPICS.journal)
    assert fold(msgspec.convert(lived, list[JournalEntry])) is not None
    assert fold(msgspec.convert([*lived, *dropped], list[JournalEntry])) is None


@pytest.mark.parametrize("request_", [read(), drop()], ids=["read", "drop"])
def test_a_group_that_is_not_quarantined_is_neither_read_nor_dropped(request_: dict[str, Any]) -> None:
    whole = sent(commit("g", 1), stored=None).state
    refused = sent(request_, stored=whole)
    assert bodies(refused)[0]["errorCode"] == 42
    assert bodies(refused)[0]["errorMessage"] == "group 'g' is not quarantined"
    assert refused.state is not None
    assert bodies(sent(request_, stored=None))[0]["errorCode"] == 69


def test_a_group_whose_offsets_cannot_be_read_is_shown_and_dropped_although_its_members_can() -> None:
    damaged = damaged_offsets()
    assert "its offsets are damaged" in bodies(sent(read(), stored=damaged))[0]["reason"]
    assert sent(drop(), stored=damaged).state is None
