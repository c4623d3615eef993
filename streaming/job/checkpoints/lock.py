"""The locks of a checkpoint in a local folder.

``lock`` is for one job. A job that takes over from one that hangs goes on without it: that job is fenced, and may never
release it. So there is a second one, ``command.lock``: all jobs that run on the checkpoint share it, and a command that
replaces the checkpoint holds both alone.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.contract.errors import CannotRun
from streaming.embedded.folder_lock import holder, name_holder, open_lock, try_lock

LOCK_LIMIT_SECONDS = 30.0

LOCK, COMMAND_LOCK = "lock", "command.lock"

LOCKS = (LOCK, COMMAND_LOCK)
"""The files of the locks."""


class CheckpointLock:
    """The locks of a local checkpoint, for one job or command. A job's JVM should inherit ``descriptors``.

    So they last until this process and the JVM have ended, or until :meth:`release`; a job that starts after a
    ``kill -9`` waits for the last batch of the killed job.
    """

    def __init__(self, folder: Path, descriptors: tuple[int, int]) -> None:
        self.descriptors = descriptors
        self._folder = folder
        self._of_job, self._of_command = descriptors

    def acquire(self, wait_seconds: float = LOCK_LIMIT_SECONDS) -> None:
        """Acquire the lock of the one job.

        Raises:
            CannotRun: another process has held the lock for ``wait_seconds``. The message names it.
        """
        deadline = time.monotonic() + wait_seconds
        while not try_lock(self._of_job):
            if time.monotonic() > deadline:
                raise CannotRun(f"checkpoint {self._folder} is in use by {holder(self._of_job)}")
            time.sleep(0.05)
        name_holder(self._of_job)

    def share(self) -> bool:
        """Keep commands away until the release; returns False while a command holds the checkpoint."""
        has_shared = try_lock(self._of_command, fcntl.LOCK_SH)
        if has_shared:
            name_holder(self._of_command)
        return has_shared

    def acquire_alone(self) -> None:
        """Acquire both locks, for a command. Raises CannotRun: a job or another command uses the checkpoint."""
        if not try_lock(self._of_command):
            raise CannotRun(f"checkpoint {self._folder} is in use by {holder(self._of_command)}")
        name_holder(self._of_command)
        self.acquire(0)

    def require_in_place(self) -> None:
        """Check that the checkpoint is still the one whose locks these are.

        Raises:
            CannotRun: it was moved away since, or removed.
        """
        for descriptor, name in zip(self.descriptors, LOCKS, strict=True):
            try:
                is_same = os.path.samestat(os.fstat(descriptor), (self._folder / name).stat())
            except FileNotFoundError:
                is_same = False
            if not is_same:
                raise CannotRun(
                    f"checkpoint {self._folder} was moved away or removed since this job has started: start it again"
                )

    def release(self) -> None:
        """Let others acquire the locks, also while the JVM of this job still runs."""
        for descriptor in self.descriptors:
            fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def checkpoint_lock(folder: Path) -> Iterator[CheckpointLock]:
    """The locks of a local checkpoint, not acquired yet.

    The folder is created, and removed again if CannotRun ends the block and nothing was put there.
    """
    existed = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    with open_lock(folder / LOCK) as of_job, open_lock(folder / COMMAND_LOCK) as of_command:
        try:
            yield CheckpointLock(folder, (of_job.fileno(), of_command.fileno()))
        except CannotRun:
            if not existed:
                remove_if_empty(folder)
            raise


def remove_if_empty(folder: Path) -> None:
    """Remove a place for a checkpoint in which there are only its locks."""
    if folder.is_dir() and {path.name for path in folder.iterdir()} == set(LOCKS):
        remove_locks(folder)
        folder.rmdir()


def remove_locks(folder: Path) -> None:
    """Remove the files of the locks: who holds them holds nothing that others look for."""
    for name in LOCKS:
        (folder / name).unlink(missing_ok=True)


def is_locked(folder: Path) -> bool:
    """Whether a job or a command uses a local checkpoint, as far as this user may see."""
    return user_of(folder) is not None


def user_of(folder: Path) -> str | None:
    """Name the process that uses a local checkpoint; None if none does, as far as this user may see."""
    return _holder(folder / LOCK, fcntl.LOCK_SH) or _holder(folder / COMMAND_LOCK, fcntl.LOCK_EX)


def _holder(path: Path, kind: int) -> str | None:
    """The process because of which a lock of this kind cannot be had."""
    try:
        with path.open() as file:
            return None if try_lock(file.fileno(), kind) else holder(file.fileno())
    except OSError:
        return None
