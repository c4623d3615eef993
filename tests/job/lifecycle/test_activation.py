"""A job that becomes active, and the commands that replace its checkpoint."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.contract.errors import CannotRun
from streaming.job.backups.placement import locked_place, replace
from streaming.job.checkpoints.lock import CheckpointLock, checkpoint_lock, is_locked
from streaming.job.lifecycle.activation import keep_commands_away
from tests.job.backups.fake_checkpoints import memory_checkpoint


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    return folder


@pytest.fixture
def lock(place: Path) -> Iterator[CheckpointLock]:
    """That of a job which stands by."""
    with checkpoint_lock(place) as opened:
        yield opened


def become_active(lock: CheckpointLock, lines: list[str] | None = None, why_lost: str | None = None) -> None:
    keep_commands_away(lock, lambda: why_lost, print if lines is None else lines.append)


def test_a_job_without_the_lock_of_one_that_hangs_keeps_commands_away(place: Path, lock: CheckpointLock) -> None:
    with checkpoint_lock(place) as of_hanging_job:
        assert of_hanging_job.share()
        of_hanging_job.acquire()
        become_active(lock)
    with pytest.raises(CannotRun, match=rf"is in use by process {os.getpid()} \("), locked_place(place):
        pass
    assert is_locked(place)
    lock.release()
    assert not is_locked(place)
    with locked_place(place):
        assert is_locked(place)


def test_a_job_that_overtakes_waits_for_a_command_and_runs_on_what_it_made(
    tmp_path: Path, place: Path, lock: CheckpointLock
) -> None:
    lines: list[str] = []
    active = threading.Thread(target=become_active, args=(lock, lines))
    with locked_place(place):
        active.start()
        active.join(0.5)
        assert active.is_alive()
        assert lines == ["waiting for the end of a command that changes the checkpoint"]
        with pytest.raises(CannotRun, match="another job is active"):
            become_active(lock, why_lost="another job is active")
        replace(memory_checkpoint(tmp_path / "made"), place)
    active.join(10)
    assert not active.is_alive()
    assert is_locked(place)
    assert (place / "offsets").is_dir()


def test_a_job_whose_checkpoint_was_moved_away_meanwhile_does_not_start(place: Path, lock: CheckpointLock) -> None:
    place.rename(place.with_name("moved"))
    with pytest.raises(CannotRun, match=r"was moved away or removed .*: start it again"):
        become_active(lock)
    with checkpoint_lock(place), pytest.raises(CannotRun, match="was moved away or removed"):
        become_active(lock)
