"""Which files a batch needs, for folders whose files have the names that Spark gives them."""

from pathlib import Path

import pytest

from streaming.contract.errors import CannotRun
from streaming.job.spark_internals.checkpoint_layout.needed_files import (
    UnreadableCheckpoint,
    decompressed,
    needed_files,
    newest_complete_batch,
)
from streaming.job.spark_internals.registry import CHECKPOINT_LAYOUT, OFF_VARIABLE
from tests.job.backups.fake_checkpoints import (
    add_batch,
    memory_checkpoint,
    plan,
    write,
    write_changelog,
    write_snapshot,
)

ALWAYS = ["metadata", "sources/0/0", "state/0/0/_metadata/schema", "state/0/_metadata/metadata"]


def of_state(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith("state/") and "_metadata" not in name]


def test_the_newest_batch_with_a_commit_is_the_newest_complete_one(tmp_path: Path) -> None:
    assert newest_complete_batch(tmp_path) is None
    memory_checkpoint(tmp_path, 11)
    write(tmp_path, offsets__11=plan(), **{"commits__.11.tmp": ""})
    assert newest_complete_batch(tmp_path) == 10


def test_a_batch_needs_its_logs_the_plan_before_it_and_what_is_written_once(tmp_path: Path) -> None:
    needed = needed_files(memory_checkpoint(tmp_path, 6), 5)
    assert needed.missing == []
    logs = ["commits/5", "offsets/4", "offsets/5"]
    assert sorted(set(needed.present) - set(of_state(needed.present))) == sorted([*ALWAYS, *logs])


def test_the_state_of_memory_is_the_newest_snapshot_up_to_the_batch_and_the_changes_after_it(tmp_path: Path) -> None:
    memory_checkpoint(tmp_path, 8)
    assert of_state(needed_files(tmp_path, 2).present) == [f"state/0/0/{number}.delta" for number in (3, 2, 1)]
    write(tmp_path, **{"state__0__0__3.snapshot": "", "state__0__0__5.snapshot": "", "state__0__0__8.snapshot": ""})
    expected = ["state/0/0/7.delta", "state/0/0/6.delta", "state/0/0/5.snapshot"]
    assert of_state(needed_files(tmp_path, 6).present) == expected
    assert of_state(needed_files(tmp_path, 7).present) == ["state/0/0/8.snapshot"]


def test_each_state_partition_is_needed_and_a_lost_folder_is_missing(tmp_path: Path) -> None:
    memory_checkpoint(tmp_path, 1, partitions=3)
    assert of_state(needed_files(tmp_path, 0).present) == [f"state/0/{each}/1.delta" for each in range(3)]
    (tmp_path / "state/0/2/1.delta").unlink()
    assert needed_files(tmp_path, 0).missing == ["state/0/2/1.delta"]


@pytest.mark.parametrize("name", ["metadata", "offsets/3", "commits/4", "state/0/0/2.delta"])
def test_a_file_that_is_not_there_is_missing(tmp_path: Path, name: str) -> None:
    memory_checkpoint(tmp_path, 5)
    (tmp_path / name).unlink()
    assert needed_files(tmp_path, 4).missing == [name]


def rocksdb_checkpoint(folder: Path) -> Path:
    """Three batches; the last state has the id ``c``. A task that was retried has left the state ``x`` of version 2."""
    for batch in range(3):
        add_batch(folder, batch, "rocksdb")
    write(folder, metadata="", commits__2='v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["c"]]}}')
    state = folder / "state/0/0"
    write_changelog(state / "1_a.changelog", [])
    write_changelog(state / "2_b.changelog", [(1, "a")])
    write_changelog(state / "2_x.changelog", [(1, "a")])
    write_changelog(state / "3_c.changelog", [(2, "b"), (1, "a")])
    return folder


def test_the_state_of_rocksdb_follows_the_lineage(tmp_path: Path) -> None:
    rocksdb_checkpoint(tmp_path)
    expected = [f"state/0/0/{name}.changelog" for name in ("3_c", "2_b", "1_a")]
    assert of_state(needed_files(tmp_path, 2).present) == expected
    write_snapshot(tmp_path / "state/0/0/2_x.zip", "of-x.sst")
    assert of_state(needed_files(tmp_path, 2).present) == expected
    write_snapshot(tmp_path / "state/0/0/2_b.zip", "of-b.sst")
    needed = needed_files(tmp_path, 2)
    assert of_state(needed.present) == ["state/0/0/3_c.changelog", "state/0/0/2_b.zip"]
    assert needed.missing == ["state/0/0/SSTs/of-b.sst"]


def test_a_changelog_of_the_lineage_that_is_not_there_is_missing(tmp_path: Path) -> None:
    rocksdb_checkpoint(tmp_path)
    (tmp_path / "state/0/0/2_b.changelog").unlink()
    assert needed_files(tmp_path, 2).missing == ["state/0/0/2_b.changelog"]


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("offsets__2", ""),
        ("commits__2", "v2\n{}"),
        ("commits__2", "v2\n["),
        ("state__0__0__3_c.changelog", ""),
        ("state__0__0__3_c.changelog", "something else that is long enough for the header of a block"),
        ("state__0__0__3_c.zip", "no archive"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, contents: str) -> None:
    rocksdb_checkpoint(tmp_path)
    write(tmp_path, **{name: contents})
    with pytest.raises(UnreadableCheckpoint, match=name.replace("__", "/").partition(".")[0]):
        needed_files(tmp_path, 2)


def test_another_version_of_spark_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OFF_VARIABLE, CHECKPOINT_LAYOUT.name)
    with pytest.raises(CannotRun, match="checkpoint-layout"):
        needed_files(memory_checkpoint(tmp_path, 1), 0)


def test_a_stream_that_is_cut_within_a_block_ends_before_it(tmp_path: Path) -> None:
    path = tmp_path / "1_a.changelog"
    write_changelog(path, [(1, "a")])
    block = path.read_bytes()
    assert decompressed(block + block[:-1], 1000) == decompressed(block, 1000) != b""
