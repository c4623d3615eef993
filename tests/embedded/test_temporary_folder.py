"""The folder for everything temporary, and what killed processes leave."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from streaming.embedded.temporary_folder import LOCK, clear_leftovers, temporary_folder

HOLD = """
import sys
from streaming.embedded.temporary_folder import temporary_folder
with temporary_folder() as folder:
    (folder.path / "blockmgr-1").mkdir()
    (folder.path / "blockmgr-1" / "password").write_text("hidden")
    print(folder.path, flush=True)
    if "child" in sys.argv:
        import subprocess
        subprocess.Popen(["sleep", "60"], pass_fds=[folder.descriptor])
        print("child", flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def temporary_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def owner(*arguments: str) -> "subprocess.Popen[str]":
    """A process that has such a folder, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def folder_of(process: "subprocess.Popen[str]") -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_it_is_private_and_removed_with_all_that_it_holds(temporary_place: Path) -> None:
    with temporary_folder() as folder:
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        assert folder.path.parent == temporary_place
        (folder.path / "spark-1" / "deep").mkdir(parents=True)
        (folder.path / "file").touch()
    assert list(temporary_place.iterdir()) == []


def test_the_next_one_clears_what_a_killed_process_has_left_and_nothing_of_one_that_lives(
    temporary_place: Path,
) -> None:
    with owner() as killed, owner() as alive:
        left, kept = folder_of(killed), folder_of(alive)
        killed.kill()
        killed.wait()
        assert (left / "blockmgr-1" / "password").exists()
        with temporary_folder() as folder:
            assert set(temporary_place.iterdir()) == {folder.path, kept}
        assert (kept / "blockmgr-1" / "password").read_text() == "hidden"
        alive.communicate("\n")
    assert list(temporary_place.iterdir()) == []


def test_a_folder_whose_lock_a_child_has_inherited_stays_until_that_has_ended_too() -> None:
    with owner("child") as killed:
        left = folder_of(killed)
        assert killed.stdout is not None
        assert killed.stdout.readline() == "child\n"
        killed.kill()
        killed.wait()
        clear_leftovers()
        assert (left / LOCK).exists()
        os.killpg(killed.pid, signal.SIGKILL)
        # Its output ends with the last process that has it open.
        assert killed.stdout.read() == ""
    clear_leftovers()
    assert not left.exists()


def test_folders_of_others_are_not_touched(temporary_place: Path) -> None:
    without_lock = temporary_place / "group-coordinator-made-by-hand"
    without_lock.mkdir()
    (without_lock / "file").touch()
    elsewhere = temporary_place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (temporary_place / "group-coordinator-link").symlink_to(elsewhere)
    (temporary_place / "group-coordinator-file").touch()
    clear_leftovers()
    assert (without_lock / "file").exists()
    assert (elsewhere / LOCK).exists()
