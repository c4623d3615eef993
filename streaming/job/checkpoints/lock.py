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
            CannotRun: another job has held the lock for ``wait_seconds``.
        """
        deadline = time.monotonic() + wait_seconds
        while not _has_acquired(self._of_job, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise CannotRun(f"checkpoint {self._folder} is in use by another job")
            time.sleep(0.05)

    def share(self) -> bool:
        """Keep commands away until the release; returns False while a command holds the checkpoint."""
        return _has_acquired(self._of_command, fcntl.LOCK_SH)

    def acquire_alone(self) -> None:
        """Acquire both locks, for a command. Raises CannotRun: a job or another command uses the checkpoint."""
        if not _has_acquired(self._of_command, fcntl.LOCK_EX):
            raise CannotRun(f"checkpoint {self._folder} is in use by another job")
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
    """The locks of a local checkpoint, not acquired yet; the folder is created."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as of_job, (folder / COMMAND_LOCK).open("w") as of_command:
        yield CheckpointLock(folder, (of_job.fileno(), of_command.fileno()))


def is_locked(folder: Path) -> bool:
    """Whether a job or a command uses a local checkpoint, as far as this user may see."""
    return _is_held(folder / LOCK, fcntl.LOCK_SH) or _is_held(folder / COMMAND_LOCK, fcntl.LOCK_EX)


def _is_held(path: Path, kind: int) -> bool:
    """Whether a lock of this kind cannot be had."""
    try:
        with path.open() as file:
            return not _has_acquired(file.fileno(), kind)
    except OSError:
        return False


def _has_acquired(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
