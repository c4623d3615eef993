"""Checkpoints that the commands write: real jobs start with them, and have every group.

One job's life gives a checkpoint, a backup from the middle, and a journal. The commands run as processes of their own.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_logic.group import Group
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.backups.backup import back_up
from streaming.job.backups.checkpoint_writing import complete_batch, local_session, read_groups
from streaming.job.backups.placement import UNFINISHED
from streaming.job.checkpoints.lock import LOCKS
from streaming.job.group_batch.state_row import StateRow, load
from streaming.job.options import load_options
from tests.logic.invariants.of_journals import recorded
from tests.recovery.conversation import Conversation, join_request, offsets, sync_request
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.processes import Process

GROUPS = 30
MEMORY = "--set=driver-memory=512m"
LIMIT_SECONDS = 300.0
BEFORE, AFTER = 5, 9
"""The offsets that are committed before the backup and after it."""


class Life:
    """A job that has stopped, and what is left of it."""

    def __init__(self, coordinator: CoordinatorProcess, folder: Path) -> None:
        self.coordinator = coordinator
        self.folder = folder
        self.original = folder / "original"
        self.backup = folder / "none"
        self.member_id = ""

    def copy(self, name: str) -> Path:
        """A copy of the checkpoint as the job left it."""
        return Path(shutil.copytree(self.original, self.folder / name, ignore=shutil.ignore_patterns(*LOCKS)))

    @property
    def topics(self) -> Sequence[str]:
        """The options of a command that reads the topics."""
        return ("-b", self.coordinator.bootstrap_servers, "--topic-prefix", self.coordinator.topics.prefix)

    @contextmanager
    def running(self, checkpoint: Path) -> Iterator[Conversation]:
        """A job on a checkpoint, and a client."""
        coordinator = self.coordinator
        coordinator.checkpoint = checkpoint
        coordinator.options["checkpoint"] = str(checkpoint)
        # As the checkpoint was made.
        coordinator.options.pop("state-partitions", None)
        coordinator.start()
        try:
            with reading(coordinator.bootstrap_servers, coordinator.topics.responses) as responses:
                yield Conversation(coordinator.bootstrap_servers, coordinator.topics, responses)
            coordinator.stop()
        finally:
            coordinator.kill()


def commit(clients: Conversation, group_id: str, offset: int) -> int:
    body = {"groupId": group_id, "generationIdOrMemberEpoch": -1, "memberId": "", "topics": offsets(offset)}
    return int(clients.ask(group_id, "OffsetCommit", 5, body)["errorCode"])


def committed(clients: Conversation, group_id: str) -> int:
    body = {"groupId": group_id, "topics": [{"name": "payments", "partitionIndexes": [0]}]}
    found = clients.ask(group_id, "OffsetFetch", 5, body)["body"]
    return int(found["topics"][0]["partitions"][0]["committedOffset"])


def form_group(clients: Conversation, group_id: str) -> str:
    """A Stable group of one static member; returns the member's id."""
    joined = clients.ask(group_id, "JoinGroup", 9, join_request(group_id, instance_id="worker"))["body"]
    member_id = str(joined["memberId"])
    sync = sync_request(group_id, joined["generationId"], member_id, {member_id: b"all"})
    assert clients.ask(group_id, "SyncGroup", 5, sync)["errorCode"] == 0
    return member_id


@pytest.fixture(scope="module")
def life(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    folder = tmp_path_factory.mktemp("life")
    coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, {"request-partitions": 2})
    life = Life(coordinator, folder)
    try:
        with life.running(folder / "checkpoint") as clients:
            life.member_id = form_group(clients, "stable")
            form_group(clients, "rebalancing")
            for number in range(GROUPS):
                assert commit(clients, f"committing-{number}", BEFORE) == 0
            taken = back_up(coordinator.checkpoint, folder / "backups", None, datetime.now(UTC), print)
            life.backup = Path(taken.folder)
            for number in range(GROUPS):
                assert commit(clients, f"committing-{number}", AFTER) == 0
            # The member has left the group in which it was alone, and another one waits for its first generation.
            clients.ask("stable", "Heartbeat", 4, {"groupId": "stable", "generationId": 1, "memberId": life.member_id})
            waiting = clients.ask("rebalancing", "JoinGroup", 9, join_request("rebalancing"))["body"]
            clients.send("rebalancing", "JoinGroup", 9, join_request("rebalancing", waiting["memberId"]))
            assert commit(clients, "last", AFTER) == 0
        coordinator.checkpoint.rename(life.original)
        yield life
    finally:
        coordinator.kill()


@pytest.fixture(scope="module")
def spark(life: Life) -> Iterator[SparkSession]:
    flags = {"bootstrap_servers": "-", "checkpoint": str(life.folder), "driver_memory": "512m"}
    with local_session(load_options(flags, {}), life.folder, print) as session:
        yield session


def groups_in(spark: SparkSession, checkpoint: Path) -> dict[str, tuple[object, ...]]:
    """What records can change of each group."""
    found = {}
    for row in read_groups(spark, checkpoint, complete_batch(checkpoint), print):
        group = load(StateRow.unpacked(row.stored))
        assert isinstance(group, Group)
        found[row.group_id] = (*recorded(group), group.sequence)
    return found


def command(*arguments: object) -> Process:
    """``group-coordinator checkpoint ...``, started."""
    process = Process("checkpoint", [sys.executable, "-m", "streaming.cli", "checkpoint", *map(str, arguments), MEMORY])
    process.start()
    return process


def run(*arguments: object) -> list[str]:
    """The lines of a command that succeeds."""
    process = command(*arguments)
    try:
        assert process.wait(LIMIT_SECONDS) == 0, process.tail()
    finally:
        process.kill()
    return process.output


def check_served(life: Life, checkpoint: Path) -> None:
    """A job on the checkpoint has the members and the offsets, and takes further requests."""
    with life.running(checkpoint) as clients:
        assert clients.heartbeat("stable", 1, life.member_id) == 0
        assert {committed(clients, f"committing-{number}") for number in range(GROUPS)} == {AFTER}
        assert commit(clients, f"written-by-{checkpoint.name}", AFTER) == 0
        assert committed(clients, f"written-by-{checkpoint.name}") == AFTER


def test_a_rebuild_from_the_journal_alone_gives_every_group_as_it_was(life: Life, spark: SparkSession) -> None:
    place = life.folder / "rebuilt"
    lines = run("rebuild", place, *life.topics, "--state-partitions", 2)
    assert "every group can be rebuilt completely" in lines
    expected = groups_in(spark, life.original)
    assert groups_in(spark, place) == expected
    assert expected["stable"][2] != expected["rebalancing"][2]
    check_served(life, place)
    assert {name: group for name, group in groups_in(spark, place).items() if name in expected} == expected
    verified = run("verify", place, *life.topics)
    assert verified[-1] == "no difference"


def test_a_rebuild_from_a_backup_and_the_journal_gives_every_group_as_it_was(life: Life, spark: SparkSession) -> None:
    place = life.folder / "rebuilt-from-backup"
    run("rebuild", place, "--backup", life.backup, *life.topics, "--state-store", "rocksdb")
    expected, found = groups_in(spark, life.original), groups_in(spark, place)
    assert {name: group for name, group in found.items() if name in expected} == expected
    check_served(life, place)


def test_a_restored_backup_reads_what_followed(life: Life) -> None:
    place = life.folder / "restored"
    lines = run("restore", life.backup, place, *life.topics)
    assert any("still has every request since the backup" in line for line in lines)
    check_served(life, place)


def test_partitions_and_store_change_and_groups_do_not(life: Life, spark: SparkSession) -> None:
    place, expected = life.copy("changed"), groups_in(spark, life.original)
    run("repartition", place, "--state-partitions", 3)
    assert complete_batch(place).plan.state_partitions == 3
    assert groups_in(spark, place) == expected
    check_served(life, place)
    served = groups_in(spark, place)
    run("repartition", place, "--state-partitions", 1)
    other = life.folder / "migrated"
    run("migrate", place, other, "--state-store", "rocksdb")
    assert complete_batch(other).plan.state_partitions == 1
    assert groups_in(spark, other) == groups_in(spark, place) == served
    check_served(life, other)
    aside = [path for path in life.folder.glob("changed.*") if (path / "offsets").is_dir()]
    assert len(aside) == 2
    assert expected in [groups_in(spark, path) for path in aside]


@pytest.mark.parametrize("line", ["starting Spark", "writing ", "comparing "])
def test_a_command_that_is_killed_changes_nothing_and_runs_again(life: Life, spark: SparkSession, line: str) -> None:
    name = f"killed-{line.split()[0]}"
    place, expected = life.copy(name), groups_in(spark, life.original)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    killed = command("repartition", place, "--state-partitions", 2)
    try:
        killed.await_line(line, lambda found: found.startswith(line), LIMIT_SECONDS)
    finally:
        killed.kill()
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name not in LOCKS} == before
    assert place.with_name(name + UNFINISHED).exists()
    run("migrate", place, place, "--state-store", "rocksdb")
    assert groups_in(spark, place) == expected
    assert not place.with_name(name + UNFINISHED).exists()
