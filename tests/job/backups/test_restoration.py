"""Restores of folders with the files of a checkpoint: what is copied, refused, and what a kill leaves."""

import os
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streaming.cli.app import app
from streaming.contract.errors import CannotRun
from streaming.job.backups import placement
from streaming.job.backups.backup import back_up
from streaming.job.backups.last_job import NOT_CHECKED
from streaming.job.backups.manifest import CHECKPOINT, MANIFEST
from streaming.job.backups.placement import UNFINISHED, locked_place, place, replace, require_free, unfinished_folder
from streaming.job.backups.restoration import GO_ON, Restored, restore
from streaming.job.checkpoints.lock import LOCKS, checkpoint_lock, is_locked
from streaming.job.options import load_options
from tests.job.backups.fake_checkpoints import memory_checkpoint, write
from tests.support.processes import Process
from tests.support.waiting import wait_until


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    checkpoint = memory_checkpoint(tmp_path / "checkpoint")
    return Path(back_up(checkpoint, tmp_path / "target", None, datetime.now(UTC), print).folder)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "restored" / "checkpoint"


def restored(backup: Path, target: Path, *, accepts_losses: bool = True) -> Restored:
    options = load_options({"bootstrap_servers": "kafka:9092", "checkpoint": str(target)}, {})
    return restore(backup, target, options, None, print, accepts_losses=accepts_losses)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without its locks."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in files.items() if name not in LOCKS}


def test_a_restored_checkpoint_is_that_of_the_backup_and_free_for_a_job(backup: Path, target: Path) -> None:
    done = restored(backup, target)
    assert contents(target) == contents(backup / CHECKPOINT)
    assert (done.batch, done.files) == (2, len(contents(target)))
    assert not is_locked(target)
    assert [path.name for path in target.parent.iterdir()] == ["checkpoint"]
    # Files of the backup are not linked: a job deletes those that it no longer needs, and may write others.
    assert (target / "offsets/2").stat().st_ino != (backup / CHECKPOINT / "offsets/2").stat().st_ino


def test_without_the_brokers_a_restore_says_that_it_did_not_look_for_a_job(backup: Path, target: Path) -> None:
    lines: list[str] = []
    options = load_options({"bootstrap_servers": "kafka:9092", "checkpoint": str(target)}, {})
    restore(backup, target, options, None, lines.append, accepts_losses=True)
    assert f"warning: {NOT_CHECKED}" in lines


def test_without_the_brokers_a_restore_needs_consent_and_changes_nothing_before(backup: Path, target: Path) -> None:
    with pytest.raises(CannotRun, match=GO_ON):
        restored(backup, target, accepts_losses=False)
    assert not target.exists()


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (lambda place: memory_checkpoint(place), "has a checkpoint: move it away"),
        (lambda place: write(place, notes="x"), "is not empty: it has notes"),
    ],
)
def test_a_place_that_is_not_empty_is_refused(
    backup: Path, target: Path, prepare: Callable[[Path], object], why: str
) -> None:
    prepare(target)
    before = contents(target)
    with pytest.raises(CannotRun, match=why):
        restored(backup, target)
    assert contents(target) == before


def test_a_place_that_a_job_has_locked_is_refused(backup: Path, target: Path) -> None:
    with checkpoint_lock(target) as lock:
        lock.acquire()
        with pytest.raises(CannotRun, match=rf"is in use by process {os.getpid()} \(.+\): stop it first"):
            restored(backup, target)
    assert restored(backup, target).batch == 2


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda root: (root / "state/0/0/2.delta").unlink(), "state/0/0/2.delta is lost"),
        (lambda root: rewrite(root / "state/0/0/2.delta", "changed"), "state/0/0/2.delta is not as in its manifest"),
        (lambda root: (root.parent / MANIFEST).unlink(), "is not a finished backup"),
    ],
)
def test_a_damaged_backup_is_refused_and_leaves_nothing(
    backup: Path, target: Path, damage: Callable[[Path], object], why: str
) -> None:
    damage(backup / CHECKPOINT)
    with pytest.raises(CannotRun, match=why):
        restored(backup, target)
    assert not target.exists()
    assert not target.parent.exists() or not any(target.parent.iterdir())


def rewrite(path: Path, text: str) -> None:
    """Write a new file: the old one is linked from the checkpoint."""
    path.unlink()
    path.write_text(text)


def test_a_folder_of_backups_is_refused_with_the_newest(backup: Path, target: Path) -> None:
    with pytest.raises(CannotRun, match=rf"holds 1 backup: choose {backup}"):
        restored(backup.parent, target)


RESTORE_SLOWLY = """
import sys, time
from pathlib import Path
from streaming.job.backups import restoration
from streaming.job.options import load_options
copy = restoration.shutil.copyfile
def slowly(source, target):
    copied = copy(source, target)
    print("copied", flush=True)
    time.sleep(60)
    return copied
restoration.shutil.copyfile = slowly
options = load_options({"bootstrap_servers": "kafka:9092", "checkpoint": sys.argv[2]}, {})
restoration.restore(Path(sys.argv[1]), Path(sys.argv[2]), options, None, lambda line: None, accepts_losses=True)
"""


def test_a_killed_restore_leaves_no_checkpoint_and_the_next_one_removes_its_files(backup: Path, target: Path) -> None:
    killed = Process("restore", [sys.executable, "-c", RESTORE_SLOWLY, str(backup), str(target)])
    killed.start()
    try:
        wait_until(lambda: "copied" in killed.output, "a file is copied", describe=lambda: "\n".join(killed.output))
    finally:
        killed.kill()
    assert contents(target) == {}
    assert any(target.with_name(f"checkpoint{UNFINISHED}").rglob("*"))
    restored(backup, target)
    assert contents(target) == contents(backup / CHECKPOINT)
    assert [path.name for path in target.parent.iterdir()] == ["checkpoint"]


class Killed(BaseException):
    """Ends a command as a kill does: nothing after it changes a file."""


STEPS = ("link", "rename", "unlink", "exchange")


@pytest.mark.parametrize("calls", range(14))
@pytest.mark.parametrize("exchanges", [True, False])
def test_at_every_moment_of_a_replacement_there_is_one_whole_checkpoint_or_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, exchanges: bool
) -> None:
    old, new = memory_checkpoint(tmp_path / "old", 2), memory_checkpoint(tmp_path / "made" / "new", 4)
    was, will_be = contents(old), contents(new)
    remaining, has_exchanged = calls, False

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **options: object) -> object:
            nonlocal remaining
            if remaining == 0:
                raise Killed
            remaining -= 1
            return function(*arguments, **options)

        return run

    with locked_place(old):
        monkeypatch.setattr(Path, "rename", counted(Path.rename))
        monkeypatch.setattr(Path, "unlink", counted(Path.unlink))
        monkeypatch.setattr(os, "link", counted(os.link))
        exchange = placement._exchange

        def noted(one: Path, other: Path) -> bool:
            nonlocal has_exchanged
            has_exchanged = exchanges and exchange(one, other)
            return has_exchanged

        monkeypatch.setattr(placement, "_exchange", counted(noted))
        try:
            replace(new, old)
            is_done = True
        except Killed:
            is_done = False
        finally:
            monkeypatch.undo()
    found = [contents(path) for path in tmp_path.iterdir() if (path / "offsets").exists()]
    assert was in found
    assert all(each in (was, will_be) for each in found)
    if exchanges and not is_done:
        # The exchange is the moment from which the place has the new one.
        assert contents(old) == (will_be if has_exchanged else was)
    if is_done:
        assert contents(old) == will_be
        assert sorted(map(len, found)) == sorted((len(was), len(will_be)))
        assert not is_locked(old)


def test_a_place_is_as_before_when_nothing_was_put_there(target: Path) -> None:
    with locked_place(target):
        require_free(target)
    assert not target.exists()


def test_a_checkpoint_with_which_no_query_could_start_is_not_put_in_place(tmp_path: Path, target: Path) -> None:
    with locked_place(target), unfinished_folder(target, print) as folder:
        new = memory_checkpoint(folder / "new")
        shutil.rmtree(new / "offsets")
        with pytest.raises(CannotRun, match="offsets is lost"):
            place(new, target)
    assert not target.exists()


def test_a_rebuild_needs_the_brokers(target: Path) -> None:
    refused = CliRunner().invoke(app, ["checkpoint", "rebuild", str(target)])
    assert (refused.exit_code, target.exists()) == (2, False)
    assert "-b is missing" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("repartition", "{0}", "--state-partitions", "2"), "has no complete batch"),
        (("migrate", "{0}", "{1}"), "has no complete batch"),
        (("downgrade", "{0}", "--to", "0.1.0"), "has no complete batch"),
        (("migrate", "{0}/none", "{1}"), "does not exist"),
        (("migrate", "{0}", "{0}/within"), "overlap: choose another place"),
        (("migrate", "s3a://a/b", "s3a://a/b/within"), "overlap: choose another place"),
        (("migrate", "s3://a/b", "{1}"), "Spark's name of this store is s3a://"),
        (("backup", "s3a://a/b", "s3a://a/b/backups"), "is in the checkpoint: choose a folder outside of it"),
    ],
)
def test_what_is_no_checkpoint_is_refused_before_spark_starts(
    tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    (tmp_path / "empty").mkdir()
    words = [argument.format(tmp_path / "empty", tmp_path / "target") for argument in arguments]
    refused = CliRunner().invoke(app, ["checkpoint", *words])
    assert refused.exit_code == 1
    assert why in refused.stderr
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("repartition", "{0}", "--state-partitions", "2"),
        ("migrate", "{0}", "{1}"),
        ("downgrade", "{0}", "--to", "0.1.0"),
    ],
)
def test_a_checkpoint_whose_last_batch_is_open_is_not_rewritten(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    place = memory_checkpoint(tmp_path / "checkpoint")
    (place / "commits" / "2").unlink()
    before = contents(place)
    words = [argument.format(place, tmp_path / "target") for argument in arguments]
    refused = CliRunner().invoke(app, ["checkpoint", *words])
    assert refused.exit_code == 1
    assert "has begun batch 2 and not completed it: start the job once and stop it" in refused.stderr
    assert contents(place) == before
    assert not (tmp_path / "target").exists()


def test_a_change_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    place = memory_checkpoint(tmp_path / "checkpoint")
    refused = CliRunner().invoke(app, ["checkpoint", "repartition", str(place), "--state-partitions", "1"])
    assert refused.exit_code == 1
    assert "has state-partitions 1 and state-store memory already" in refused.stderr


def test_the_command_prints_a_line_and_its_exit_code(backup: Path, target: Path) -> None:
    refused = CliRunner().invoke(app, ["checkpoint", "restore", str(backup), str(target)])
    assert (refused.exit_code, target.exists()) == (1, False)
    assert GO_ON in refused.stderr
    done = CliRunner().invoke(app, ["checkpoint", "restore", str(backup), str(target), "--yes"], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1].startswith(f"{target}: batch 2, ")
