"""A response names the change that the directory's record of the same batch shows."""

import json
from typing import Any

import pytest

from coordinator_logic.config import LOGIC_VERSION, CoordinatorConfig
from coordinator_logic.messages import GroupChange
from coordinator_logic.records import GroupDirectoryEntry, shows
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import MIN_ROW_BYTES, KafkaRecord, SizeLimits
from tests.support.request_events import commit, dumped, envelope

NOW = 1_700_000_000_000
TOPICS = TopicNames()
TOO_LARGE = commit("g", 1, clientId="c" * MIN_ROW_BYTES)


class Batches:
    """The group ``g``, whose batches have the newest response and the newest record of the directory."""

    def __init__(self, logic_version: int = LOGIC_VERSION) -> None:
        config = CoordinatorConfig(logic_version=logic_version, group_max_identifier_bytes=10 * MIN_ROW_BYTES)
        self._settings = Settings(TOPICS, 1, config, limits=SizeLimits(row=MIN_ROW_BYTES))
        self._stored: StateRow | None = None
        self._offset = 0

    def run(self, *requests: dict[str, Any]) -> tuple[Any, Any]:
        """The change that the last response names, and the record of the directory; None if there is none."""
        records = [KafkaRecord(NOW, 0, self._offset + place, b"g", dumped(each)) for place, each in enumerate(requests)]
        self._offset += len(records)
        outcome = process(self._settings, "g", records, self._stored, NOW)
        self._stored = outcome.state
        answers = [json.loads(row.value or b"") for row in outcome.rows if row.topic == TOPICS.responses]
        lines = [json.loads(row.value or b'"tombstone"') for row in outcome.rows if row.topic == TOPICS.directory]
        return answers[-1].get("directoryChange"), lines[-1] if lines else None


def delete() -> dict[str, Any]:
    return envelope("DeleteGroups", 2, {"groupsNames": ["g"]})


def test_a_response_names_the_change_that_the_directory_shows() -> None:
    batches = Batches()
    change, line = batches.run(commit("g", 1))
    assert change == {"incarnation": "0-0", "sequence": 2, "isDeletion": False}
    assert (line["incarnation"], line["sequence"]) == ("0-0", 2)


def test_a_change_that_leaves_the_directory_as_it_is_has_none() -> None:
    batches = Batches()
    batches.run(commit("g", 1))
    assert batches.run(commit("g", 2)) == (None, None)


def test_the_deletion_of_a_group_is_named_with_its_tombstone() -> None:
    batches = Batches()
    batches.run(commit("g", 1))
    change, line = batches.run(delete())
    assert change == {"incarnation": "0-0", "sequence": 3, "isDeletion": True}
    assert line == "tombstone"


def test_beside_a_refused_request_the_directory_shows_what_a_response_names() -> None:
    change, line = Batches().run(TOO_LARGE, commit("g", 1))
    assert (line["incarnation"], line["sequence"]) == (change["incarnation"], change["sequence"]) == ("0-1", 2)


@pytest.mark.parametrize("version", [0, 2])
def test_a_batch_of_an_earlier_release_names_no_change(version: int) -> None:
    change, line = Batches(version).run(commit("g", 1))
    assert (change, line["incarnation"], line["sequence"]) == (None, "", 0)


def entry(incarnation: str, sequence: int) -> GroupDirectoryEntry:
    return GroupDirectoryEntry("g", "Empty", "classic", "", 0, 0, 0, incarnation, sequence)


@pytest.mark.parametrize(
    ("newest", "change", "is_shown"),
    [
        pytest.param(entry("0-5", 3), GroupChange("0-5", 3), True, id="the change itself"),
        pytest.param(entry("0-5", 4), GroupChange("0-5", 3), True, id="a later change"),
        pytest.param(entry("0-5", 2), GroupChange("0-5", 3), False, id="an earlier change"),
        pytest.param(None, GroupChange("0-5", 1), False, id="not created yet"),
        pytest.param(None, GroupChange("0-5", 4, is_deletion=True), True, id="isDeletion"),
        pytest.param(entry("0-5", 3), GroupChange("0-5", 4, is_deletion=True), False, id="not deleted yet"),
        pytest.param(entry("0-9", 1), GroupChange("0-5", 4, is_deletion=True), True, id="created again"),
        pytest.param(entry("0-10", 1), GroupChange("0-9", 4), True, id="created again, and more digits"),
        pytest.param(entry("0-2", 7), GroupChange("0-5", 1), False, id="an earlier incarnation"),
        pytest.param(entry("1-9", 7), GroupChange("0-5", 1), False, id="an incarnation of another partition"),
        pytest.param(entry("", 0), GroupChange("0-5", 1), False, id="a record of an earlier release"),
        pytest.param(entry("rebuilt", 1), GroupChange("0-5", 1), False, id="no place"),
    ],
)
def test_whether_the_directory_shows_a_change(
    newest: GroupDirectoryEntry | None, change: GroupChange, is_shown: bool
) -> None:
    assert shows(newest, change) is is_shown
