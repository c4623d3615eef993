"""Backups of folders with the files of a checkpoint: what is copied, kept, removed, and what a kill leaves."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from streaming.contract.errors import CannotRun
from streaming.embedded.folder_lock import folder_lock
from streaming.job.backups import backup as backup_module
from streaming.job.backups.backup import Taken, back_up, finished_backups
from streaming.job.backups.contents import batches_in
from streaming.job.backups.manifest import CHECKPOINT, MANIFEST, Manifest, fingerprint, read_manifest
from streaming.job.backups.restoration import finished_manifest
from streaming.job.spark_internals.checkpoint_layout.needed_files import (
    NeededFiles,
    needed_files,
    newest_complete_batch,
)
from tests.job.backups.fake_checkpoints import add_batch, changes, memory_checkpoint, write
from tests.support.processes import Process
from tests.support.waiting import wait_until

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


class Backups:
    """A checkpoint with a few batches, and backups of it, each a minute after the one before."""

    def __init__(self, folder: Path) -> None:
        self.checkpoint = memory_checkpoint(folder / "checkpoint", 3)
        self.target = folder / "target"
        self.lines: list[str] = []
        self._now = NOON

    def take(self, keep: int | None = None) -> Taken:
        self._now += timedelta(minutes=1)
        return back_up(self.checkpoint, self.target, keep, self._now, self.lines.append)

    def take_after_a_batch(self, keep: int | None = None) -> Taken:
        add_batch(self.checkpoint, (newest_complete_batch(self.checkpoint) or 0) + 1)
        return self.take(keep)


@pytest.fixture
def backups(tmp_path: Path) -> Backups:
    return Backups(tmp_path)


@pytest.fixture
def other_file_system(monkeypatch: pytest.MonkeyPatch, backups: Backups) -> None:
    """The checkpoint is on another file system than the target."""
    link = os.link

    def link_within_target(source: Path, destination: Path) -> None:
        if not Path(source).is_relative_to(backups.target):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        link(source, destination)

    monkeypatch.setattr(os, "link", link_within_target)


def manifest_of(taken: Taken) -> Manifest:
    manifest = read_manifest(Path(taken.folder))
    assert manifest is not None
    return manifest


def files_of(folder: str) -> Iterator[str]:
    root = Path(folder) / CHECKPOINT
    yield from (path.relative_to(root).as_posix() for path in sorted(root.rglob("*")) if path.is_file())


def test_a_backup_has_the_files_that_its_batch_needs_and_those_of_the_job(backups: Backups) -> None:
    taken = backups.take()
    assert Path(taken.folder).name == "2026-11-23T12-01-00.000000Z-batch-2"
    manifest = manifest_of(taken)
    assert (manifest.batch, manifest.taken_at) == (2, int((NOON + timedelta(minutes=1)).timestamp() * 1000))
    assert sorted(manifest.files) == list(files_of(taken.folder))
    own = {"starts/1000", "requests-topic/the-id"}
    assert set(manifest.files) == own | set(needed_files(backups.checkpoint, 2).present)
    for name, file in manifest.files.items():
        assert fingerprint(backups.checkpoint / name) == file == fingerprint(Path(taken.folder) / CHECKPOINT / name)


def test_a_backup_is_itself_a_checkpoint_at_its_batch(backups: Backups) -> None:
    checkpoint = Path(backups.take().folder) / CHECKPOINT
    assert newest_complete_batch(checkpoint) == 2
    assert needed_files(checkpoint, 2).missing == []


def test_nothing_is_copied_on_the_same_file_system(backups: Backups) -> None:
    taken = backups.take()
    assert taken.copied == 0
    source, linked = backups.checkpoint / "metadata", Path(taken.folder) / CHECKPOINT / "metadata"
    assert source.samefile(linked)


def test_the_advice_for_lost_metadata_does_not_change_backups(backups: Backups) -> None:
    linked = Path(backups.take().folder) / CHECKPOINT / "metadata"
    before = linked.read_bytes()
    recovery = Path(__file__).parents[3] / "docs" / "operations" / "recovery.md"
    (advice,) = (line for line in recovery.read_text().splitlines() if line.endswith("> metadata"))
    folder, _, command = advice.strip().partition(" && ")
    assert folder.startswith("cd ")
    subprocess.run(["sh", "-c", command], cwd=backups.checkpoint, check=True)
    assert (backups.checkpoint / "metadata").read_bytes() != before
    assert linked.read_bytes() == before
    backups.take()


@pytest.mark.usefixtures("other_file_system")
def test_another_file_system_gets_only_what_the_newest_backup_does_not_have(backups: Backups) -> None:
    first = backups.take()
    assert first.copied == first.size > 0
    add_batch(backups.checkpoint, 3)
    second = backups.take()
    new = ["commits/3", "offsets/3", "state/0/0/4.delta"]
    assert second.copied == sum(manifest_of(second).files[name].size for name in new)
    shutil.rmtree(first.folder)
    for name, file in manifest_of(second).files.items():
        assert fingerprint(Path(second.folder) / CHECKPOINT / name) == file


@pytest.mark.usefixtures("other_file_system")
def test_a_file_with_the_same_name_and_size_and_other_contents_is_copied(backups: Backups) -> None:
    backups.take()
    write(backups.checkpoint, **{"state__0__0__3.delta": changes("changes X")})
    taken = backups.take()
    assert taken.copied == len(changes("changes X"))
    assert (Path(taken.folder) / CHECKPOINT / "state/0/0/3.delta").read_text() == changes("changes X")


@pytest.mark.usefixtures("other_file_system")
def test_a_file_that_was_damaged_in_the_earlier_backup_is_copied_again(backups: Backups) -> None:
    copied = Path(backups.take().folder) / CHECKPOINT
    metadata = (copied / "metadata").read_text()
    (copied / "metadata").write_text("[]")
    (copied / "state/0/0/3.delta").unlink()
    taken = backups.take()
    assert taken.copied == len(metadata + changes("changes 2"))
    assert (Path(taken.folder) / CHECKPOINT / "metadata").read_text() == metadata


def test_other_folders_in_the_target_are_left_alone(backups: Backups) -> None:
    other = backups.target / "2025-batch-7"
    other.mkdir(parents=True)
    backups.take(keep=1)
    backups.take(keep=1)
    assert other.exists()


def test_the_oldest_backups_beyond_the_number_to_keep_are_removed(backups: Backups) -> None:
    folders = [backups.take_after_a_batch().folder for _ in range(3)]
    folders.append(backups.take_after_a_batch(keep=2).folder)
    assert [str(path) for path in finished_backups(backups.target)] == folders[-2:]
    assert not Path(folders[0]).exists()


def test_backups_of_the_same_batch_do_not_replace_older_ones(backups: Backups) -> None:
    folders = [backups.take_after_a_batch().folder for _ in range(2)]
    # A job that has stopped, and a timer that goes on.
    folders += [backups.take(keep=2).folder for _ in range(2)]
    assert [str(path) for path in finished_backups(backups.target)] == folders
    assert any("has the same batch" in line for line in backups.lines)


@pytest.mark.parametrize("name", ["state/0/0/3.delta", "state/0/0/4.delta", "commits/3", "offsets/2", "metadata"])
@pytest.mark.parametrize("cut_at", [0, 1])
def test_a_damaged_checkpoint_does_not_replace_good_backups(backups: Backups, name: str, cut_at: int) -> None:
    good = backups.take().folder
    add_batch(backups.checkpoint, 3)
    damaged = backups.checkpoint / name
    contents = damaged.read_bytes()
    # Not in place: the file is linked from the backup.
    damaged.unlink()
    damaged.write_bytes(contents[:cut_at])
    with pytest.raises(CannotRun, match=rf"is damaged: {name}"):
        backups.take(keep=1)
    assert [str(path) for path in backups.target.glob("*-batch-*")] == [good]


def test_a_backup_without_a_manifest_is_removed_by_the_next_one(backups: Backups) -> None:
    unfinished = Path(backups.take().folder)
    (unfinished / MANIFEST).unlink()
    assert finished_backups(backups.target) == []
    taken = backups.take()
    assert f"removing {unfinished.name}: it was not finished" in backups.lines
    assert finished_backups(backups.target) == [Path(taken.folder)]


def test_a_damaged_manifest_of_an_earlier_backup_does_not_prevent_the_next(backups: Backups) -> None:
    (Path(backups.take().folder) / MANIFEST).write_text("{")
    backups.take()
    assert any(line.startswith("warning: ") and "cannot be read" in line for line in backups.lines)


def test_a_file_that_spark_deletes_meanwhile_leads_to_a_newer_batch(
    backups: Backups, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found_before_spark_goes_on(checkpoint: Path, batch: int) -> NeededFiles:
        needed = needed_files(checkpoint, batch)
        if batch == 2:
            add_batch(checkpoint, 3)
            write(checkpoint, **{"state__0__0__4.snapshot": changes("all")})
            (checkpoint / "state/0/0/1.delta").unlink()
        return needed

    monkeypatch.setattr(backup_module, "needed_files", found_before_spark_goes_on)
    taken = backups.take()
    assert taken.batch == 3
    assert "state/0/0/4.snapshot" in manifest_of(taken).files
    assert any("beginning again with a newer batch" in line for line in backups.lines)
    assert list(backups.target.glob("*-batch-2")) == []


def test_a_checkpoint_that_lacks_a_file_is_refused_and_the_file_named(backups: Backups) -> None:
    (backups.checkpoint / "state/0/0/2.delta").unlink()
    with pytest.raises(CannotRun, match=r"batch 2 needs state/0/0/2\.delta, which it does not have"):
        backups.take()
    assert finished_backups(backups.target) == []


def test_a_folder_without_a_complete_batch_and_a_target_within_are_refused(backups: Backups, tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="has no complete batch"):
        back_up(tmp_path / "nothing", backups.target, None, NOON, print)
    with pytest.raises(CannotRun, match="is in the checkpoint"):
        back_up(backups.checkpoint, backups.checkpoint / "backups", None, NOON, print)


def test_a_killed_backup_is_unfinished_and_the_next_one_succeeds(tmp_path: Path) -> None:
    checkpoint, target = memory_checkpoint(tmp_path / "checkpoint", 500), tmp_path / "target"
    command = [sys.executable, "-m", "streaming.cli", "checkpoint", "backup", str(checkpoint), str(target)]
    process = Process("backup", command)
    process.start()
    try:
        wait_until(lambda: any(target.glob(f"*/{CHECKPOINT}/state/0/0/*.delta")), "the backup has begun")
    finally:
        process.kill()
    (unfinished,) = target.glob("*-batch-*")
    assert not (unfinished / MANIFEST).exists()
    process.start()
    assert process.wait() == 0, process.tail()
    assert any(unfinished.name in line and "was not finished" in line for line in process.output)
    (finished,) = target.glob("*-batch-*")
    assert finished_backups(target) == [finished]


def test_a_folder_of_backups_shows_nothing_else_and_is_listed_with_the_batch_of_each(backups: Backups) -> None:
    backups.take()
    backups.take_after_a_batch()
    shown = sorted(path for path in backups.target.iterdir() if not path.name.startswith("."))
    first, second = batches_in(backups.target)
    assert [first.folder, second.folder] == [str(path) for path in shown]
    assert (second.batch, second.taken_at - first.taken_at) == (first.batch + 1, 60_000)
    assert (first.files or 0) > 0
    assert batches_in(shown[0]) == [first]
    assert [each.batch for each in batches_in(backups.checkpoint)][-1] == second.batch
    with pytest.raises(CannotRun, match="holds no backup, and no batch of a job"):
        batches_in(backups.target.parent)


def test_a_folder_of_backups_in_place_of_one_is_refused_with_their_number(backups: Backups) -> None:
    only = backups.take()
    with pytest.raises(CannotRun, match=f"holds 1 backup: choose {only.folder}$"):
        finished_manifest(backups.target)
    newest = backups.take_after_a_batch()
    with pytest.raises(CannotRun, match=f"holds 2 backups: choose one of them, the newest is {newest.folder}$"):
        finished_manifest(backups.target)


def test_one_backup_at_a_time_is_taken_in_a_target(backups: Backups) -> None:
    backups.take()
    with (
        folder_lock(backups.target),
        pytest.raises(CannotRun, match=rf"{backups.target} is in use by process {os.getpid()} \("),
    ):
        backups.take()
