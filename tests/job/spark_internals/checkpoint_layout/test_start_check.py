"""How far the job can go back from damage, by the names and sizes of the files of a made-up checkpoint."""

import json
from pathlib import Path

import pytest

from streaming.job.checkpoints.local_folder import LocalFolder
from streaming.job.spark_internals.checkpoint_layout.start_check import (
    DamagedFile,
    check_contents,
    check_files,
    files_to_remove,
)
from streaming.job.state_stores import PROVIDER, STATE_STORES, StateStore

NEWEST = 20
SNAPSHOT = 15
LZ4_END = b"LZ4Block\x15" + bytes(12)


@pytest.fixture(params=["memory", "rocksdb"])
def store(request: pytest.FixtureRequest) -> StateStore:
    chosen: StateStore = request.param
    return chosen


@pytest.fixture
def checkpoint(store: StateStore, tmp_path: Path) -> Path:
    """A stopped job's checkpoint: batches 10 to 20, and two state partitions."""
    (tmp_path / "metadata").write_text('{"id":"x"}')
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
    for partition in range(2):
        (tmp_path / f"state/0/{partition}").mkdir(parents=True)
    settings = {"spark.sql.shuffle.partitions": "2", PROVIDER: STATE_STORES[store][PROVIDER]}
    for batch in range(10, NEWEST + 1):
        (tmp_path / f"offsets/{batch}").write_text(
            f'v1\n{json.dumps({"batchTimestampMs": 5, "conf": settings})}\n{{"requests":{{"0":1}}}}'
        )
        ids = {"0": [[f"id{batch}"], [f"id{batch}"]]} if store == "rocksdb" else None
        (tmp_path / f"commits/{batch}").write_text(f"v2\n{json.dumps({'stateUniqueIds': ids})}")
        for partition in range(2):
            (tmp_path / f"state/0/{partition}/{changes(store, batch + 1)}").write_bytes(LZ4_END)
    if store == "memory":
        for partition in range(2):
            (tmp_path / f"state/0/{partition}/{SNAPSHOT}.snapshot").write_bytes(LZ4_END)
    return tmp_path


def changes(store: StateStore, version: int) -> str:
    """The name of the file with the changes of a version."""
    return f"{version}.delta" if store == "memory" else f"{version}_id{version - 1}.changelog"


def batches(first: int) -> list[str]:
    """The files of the logs from the newest batch down to this one."""
    return [f"{log}/{batch}" for batch in range(NEWEST, first - 1, -1) for log in ("offsets", "commits")]


def damage_of(checkpoint: Path) -> tuple[str, list[str]]:
    """What is damaged, and the files to remove."""
    folder = LocalFolder(checkpoint)
    with pytest.raises(DamagedFile) as damaged:
        check_contents(folder)
    return str(damaged.value), list(files_to_remove(folder, damaged.value))


def test_a_sound_checkpoint_is_accepted_complete_and_with_an_open_batch(checkpoint: Path) -> None:
    check_contents(LocalFolder(checkpoint))
    (checkpoint / f"commits/{NEWEST}").unlink()
    check_contents(LocalFolder(checkpoint))


@pytest.mark.parametrize("folder", ["", "offsets", "state/0/0"])
def test_a_new_checkpoint_is_accepted(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    check_files(LocalFolder(tmp_path))


def test_the_job_goes_back_to_the_newest_version_that_all_partitions_have(checkpoint: Path, store: StateStore) -> None:
    (checkpoint / f"state/0/0/{changes(store, NEWEST + 1)}").unlink()
    assert damage_of(checkpoint)[1] == batches(NEWEST)
    (checkpoint / f"state/0/1/{changes(store, NEWEST)}").write_bytes(b"")
    # Of RocksDB's files, only that of the newest version is known by its name.
    assert damage_of(checkpoint) == (f"state/0/0/{changes(store, NEWEST + 1)} is lost", batches(NEWEST - 1))


def test_a_file_that_was_not_written_to_its_end_counts_as_lost(checkpoint: Path, store: StateStore) -> None:
    (checkpoint / f"state/0/1/{changes(store, NEWEST + 1)}").write_bytes(LZ4_END[:-1])
    check_files(LocalFolder(checkpoint))
    what, removable = damage_of(checkpoint)
    assert (what, removable) == (
        f"state/0/1/{changes(store, NEWEST + 1)} was not written to its end",
        batches(NEWEST),
    )


@pytest.mark.parametrize("store", ["memory"])
def test_nothing_is_removed_where_no_version_is_whole(checkpoint: Path) -> None:
    for file in (checkpoint / "state/0/1").iterdir():
        file.unlink()
    assert damage_of(checkpoint) == ("state/0/1/1.delta is lost", [])


@pytest.mark.parametrize("store", ["memory"])
def test_an_empty_snapshot_is_passed_over_while_the_deltas_before_it_are_there(checkpoint: Path) -> None:
    (checkpoint / "state/0/1/11.snapshot").write_bytes(LZ4_END)
    (checkpoint / f"state/0/1/{SNAPSHOT}.snapshot").write_bytes(b"")
    check_files(LocalFolder(checkpoint))
    (checkpoint / "state/0/1/11.snapshot").unlink()
    assert damage_of(checkpoint) == ("state/0/1/1.delta is lost", [])


@pytest.mark.parametrize("store", ["memory"])
def test_going_back_does_not_help_while_a_damaged_snapshot_is_needed(checkpoint: Path) -> None:
    (checkpoint / f"state/0/1/{SNAPSHOT}.snapshot").write_bytes(LZ4_END[:-1])
    assert damage_of(checkpoint) == (f"state/0/1/{SNAPSHOT}.snapshot was not written to its end", [])


@pytest.mark.parametrize("store", ["memory"])
def test_who_goes_back_beyond_a_snapshot_removes_that_too(checkpoint: Path) -> None:
    later = f"state/0/0/{NEWEST + 1}.snapshot"
    (checkpoint / later).write_bytes(LZ4_END)
    (checkpoint / f"offsets/{NEWEST}").write_bytes(b"")
    assert damage_of(checkpoint)[1] == [*batches(NEWEST), later]


@pytest.mark.parametrize("store", ["rocksdb"])
def test_without_the_commit_that_has_the_ids_the_open_batch_is_removed(checkpoint: Path) -> None:
    for batch in (NEWEST, NEWEST - 1):
        (checkpoint / f"commits/{batch}").unlink()
    assert damage_of(checkpoint) == (f"commits/{NEWEST - 1} is lost", [f"offsets/{NEWEST}"])
