"""What an earlier release has left beside its checkpoint: today's commands read its topics, and restore its backup."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator_logic.records import JournalEntry, entry_decoder, fold
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.group_batch.state_row import StateRow, load
from tests.cli.test_commands import printed_json, run
from tests.logic.invariants.of_journals import recorded
from tests.recovery.conversation import Conversation
from tests.recovery.kept.archive import (
    OPTIONS,
    TOPICS,
    WITH_CONSUMER_GROUPS,
    Unpacked,
    commit_of,
    forget_requests_topic,
)
from tests.recovery.kept.groups import AFTER_BACKUP, BEFORE_BACKUP
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import reading

GROUPS = {
    "stable": ("classic", "Stable"),
    "joining": ("classic", "PreparingRebalance"),
    "simple": ("classic", "Empty"),
    "transactional": ("classic", "Empty"),
    "late": ("classic", "Empty"),
    "reconciling": ("consumer", "Reconciling"),
    "upgraded": ("consumer", "Reconciling"),
    "configured": ("consumer", "Stable"),
}
"""The type and the state of each group that was not deleted."""

DELETED = "deleted"


@pytest.fixture(scope="module", params=WITH_CONSUMER_GROUPS, ids=commit_of)
def archive(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Unpacked:
    return Unpacked(request.param, tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="module")
def servers(archive: Unpacked) -> Iterator[str]:
    """A broker with the records that the earlier job has left."""
    with EmbeddedBroker() as broker:
        archive.restore_topics(broker.bootstrap_servers, "requests", "journal", "directory")
        yield broker.bootstrap_servers


def printed(servers: str, *arguments: object) -> Any:
    """The JSON output of a command that reads the topics."""
    topics = {"BOOTSTRAP_SERVERS": servers, "TOPIC_PREFIX": TOPICS.prefix}
    variables = {f"GROUP_COORDINATOR_{name}": value for name, value in topics.items()}
    return printed_json(run(*map(str, arguments), "--json", **variables))


def test_the_journal_folds_to_the_groups_that_were_stored(archive: Unpacked) -> None:
    stored = {group_id: load(StateRow.unpacked(state)) for group_id, state in archive.states.items()}
    assert set(stored) == set(GROUPS)
    journals: dict[str, list[JournalEntry]] = {}
    decoder = entry_decoder()
    for _, _, value in archive.records("journal"):
        entry = decoder.decode(value or b"")
        journals.setdefault(entry.group_id, []).append(entry)
    assert set(journals) == {*GROUPS, DELETED}
    assert fold(journals.pop(DELETED)) is None
    for group_id, entries in journals.items():
        folded, group = fold(entries), stored[group_id]
        assert folded is not None
        assert group is not None
        assert recorded(folded) == recorded(group), group_id
        assert (group.group_type, group.state.value) == GROUPS[group_id]


@pytest.mark.jvm
def test_the_directory_lists_every_group(servers: str) -> None:
    listed = printed(servers, "groups", "list")
    assert {group["groupId"]: (group["groupType"], group["groupState"]) for group in listed} == GROUPS


@pytest.mark.jvm
def test_the_journal_is_explained(servers: str) -> None:
    stable = printed(servers, "explain", "stable")
    assert stable["now"]["state"] == "Stable"
    assert [rebalance["causes"][0]["trigger"] for rebalance in stable["rebalances"]] == ["member joined"] * 2
    upgraded = printed(servers, "explain", "upgraded")
    assert [rebalance["groupType"] for rebalance in upgraded["rebalances"]] == ["classic", "consumer"]
    assert [wait["what"] for wait in upgraded["now"]["waitsFor"]] == ["to reach its target"] * 2


@pytest.mark.long
@pytest.mark.jvm
def test_every_group_is_rebuilt_from_the_journal(servers: str, tmp_path: Path) -> None:
    rebuilt = printed(servers, "checkpoint", "rebuild", tmp_path / "rebuilt", "--set", "driver-memory=512m")
    assert rebuilt["isWritten"]
    assert rebuilt["report"]["groups"] == len(GROUPS)


@pytest.mark.jvm
def test_the_backup_is_restored_and_a_job_reads_what_followed(servers: str, archive: Unpacked, tmp_path: Path) -> None:
    coordinator = CoordinatorProcess(servers, tmp_path, OPTIONS)
    restored = printed_json(
        run("checkpoint", "restore", str(archive.backup), str(coordinator.checkpoint), "--yes", "--json")
    )
    assert restored["files"] > 0
    forget_requests_topic(coordinator.checkpoint)
    known = archive.known["stable"]
    try:
        coordinator.start()
        with reading(coordinator.bootstrap_servers, TOPICS.responses) as responses:
            clients = Conversation(coordinator.bootstrap_servers, TOPICS, responses)
            for member_id in (known["static"], known["dynamic"]):
                assert clients.heartbeat("stable", known["generationId"], member_id) == 0
            fetched = clients.ask("late", "OffsetFetch", 7, {"groupId": "late", "topics": None})["body"]
    finally:
        coordinator.kill()
    assert fetched["topics"][0]["partitions"][0]["committedOffset"] == AFTER_BACKUP != BEFORE_BACKUP
