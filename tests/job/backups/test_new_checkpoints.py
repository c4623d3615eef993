"""Checkpoints that the commands write: real jobs start with them, and have every group.

One job's life gives a checkpoint, a backup from the middle, and a journal. The commands run as processes of their own.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_logic.group import Group
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.backups.checkpoint_writing import complete_batch, local_session, read_groups
from streaming.job.backups.placement import UNFINISHED
from streaming.job.checkpoints.lock import LOCKS
from streaming.job.group_batch.state_row import StateRow, load
from streaming.job.options import load_options
from tests.job.backups.life import LIMIT_SECONDS, Life, check_served, command, live, run
from tests.logic.invariants.of_journals import recorded
from tests.support.coordinator_process import SHORT_LIVED_JVM, CoordinatorProcess


@pytest.fixture(scope="module")
def life(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    folder = tmp_path_factory.mktemp("life")
    coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, {"request-partitions": 2})
    life = Life(coordinator, folder)
    try:
        live(life)
        yield life
    finally:
        coordinator.kill()


@pytest.fixture(scope="module")
def spark(life: Life) -> Iterator[SparkSession]:
    flags = {
        "bootstrap_servers": "kafka:9092",
        "checkpoint": str(life.folder),
        "driver_memory": "512m",
        **SHORT_LIVED_JVM,
    }
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


def wake_times(spark: SparkSession, checkpoint: Path) -> dict[str, int]:
    """When each group is called without requests, in ms since the epoch; 0 if never."""
    rows = read_groups(spark, checkpoint, complete_batch(checkpoint), print)
    return {row.group_id: max(0, row.wake_at) for row in rows}


def check_wake_times(before: dict[str, int], after: dict[str, int], since: int) -> None:
    """Each group is called when it was due before; one that was overdue, after the batch that has written it.

    That batch was after ``since`` (ms since the epoch), and Spark's next millisecond is the earliest.
    """
    now = time.time_ns() // 1_000_000
    assert before.keys() == after.keys()
    for group_id, wake_at in before.items():
        is_overdue = 0 < wake_at < after[group_id]
        assert after[group_id] == wake_at or (is_overdue and since < after[group_id] <= now + 1), group_id


def test_a_rebuild_from_the_journal_alone_gives_every_group_as_it_was(life: Life, spark: SparkSession) -> None:
    place = life.folder / "rebuilt"
    lines = run("rebuild", place, *life.topics, "--state-partitions", 2)
    assert "every group can be rebuilt completely" in lines
    expected = groups_in(spark, life.original)
    assert groups_in(spark, place) == expected
    assert min(wake_times(spark, place).values()) > 0, "each group has members or offsets that can expire"
    assert expected["stable"][2] != expected["rebalancing"][2]
    check_served(life, place)
    assert {name: group for name, group in groups_in(spark, place).items() if name in expected} == expected
    verified = run("verify", place, *life.topics)
    assert verified[-1] == "no difference"


@pytest.mark.long
def test_a_rebuild_from_a_backup_and_the_journal_gives_every_group_as_it_was(life: Life, spark: SparkSession) -> None:
    place = life.folder / "rebuilt-from-backup"
    run("rebuild", place, "--backup", life.backup, *life.topics, "--state-store", "rocksdb")
    expected, found = groups_in(spark, life.original), groups_in(spark, place)
    assert {name: group for name, group in found.items() if name in expected} == expected
    check_served(life, place)


@pytest.mark.long
def test_a_restored_backup_reads_what_followed(life: Life) -> None:
    place = life.folder / "restored"
    lines = run("restore", life.backup, place, *life.topics)
    assert any("still has every request since the backup" in line for line in lines)
    check_served(life, place)


@pytest.mark.long
def test_partitions_and_store_change_and_groups_do_not(life: Life, spark: SparkSession) -> None:
    place, expected = life.copy("changed"), groups_in(spark, life.original)
    due, since = wake_times(spark, life.original), time.time_ns() // 1_000_000
    assert any(due.values())
    run("repartition", place, "--state-partitions", 3)
    check_wake_times(due, wake_times(spark, place), since)
    assert complete_batch(place).plan.state_partitions == 3
    assert groups_in(spark, place) == expected
    check_served(life, place)
    served, due, since = groups_in(spark, place), wake_times(spark, place), time.time_ns() // 1_000_000
    run("repartition", place, "--state-partitions", 1)
    other = life.folder / "migrated"
    run("migrate", place, other, "--state-store", "rocksdb")
    assert complete_batch(other).plan.state_partitions == 1
    assert groups_in(spark, other) == groups_in(spark, place) == served
    check_wake_times(due, wake_times(spark, other), since)
    check_served(life, other)
    aside = [path for path in life.folder.glob("changed.*") if (path / "offsets").is_dir()]
    assert len(aside) == 2
    assert expected in [groups_in(spark, path) for path in aside]


def begins_with(words: str) -> Callable[[str], bool]:
    return lambda line: line.startswith(words)


@pytest.mark.long
def test_a_command_that_is_killed_changes_nothing_and_runs_again(life: Life, spark: SparkSession) -> None:
    place, expected = life.copy("killed"), groups_in(spark, life.original)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    unfinished = place.with_name("killed" + UNFINISHED)
    for line in ("starting Spark", "writing ", "comparing "):
        with command("repartition", place, "--state-partitions", 2) as killed:
            killed.await_line(line, begins_with(line), LIMIT_SECONDS)
        left = {path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name not in LOCKS}
        assert left == before
        assert unfinished.exists()
    run("migrate", place, place, "--state-store", "rocksdb")
    assert groups_in(spark, place) == expected
    assert not unfinished.exists()
