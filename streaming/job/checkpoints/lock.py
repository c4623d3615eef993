"""The lock of a checkpoint in a local folder."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.contract.errors import CannotRun

LOCK_LIMIT_SECONDS = 30.0


class CheckpointLock:
    """A lock on a local checkpoint, for one job. The JVM should inherit ``descriptor``, and then holds the lock, too.

    So the lock lasts until this process and the JVM have ended, or until :meth:`release`; a job that starts after a
    ``kill -9`` waits for the last batch of the killed job.
    """

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.descriptor = descriptor
        self._folder = folder

    def acquire(self, wait_seconds: float = LOCK_LIMIT_SECONDS) -> None:
        """Take the lock.

        Raises:
            CannotRun: another job has held the lock for ``wait_seconds``.
        """
        deadline = time.monotonic() + wait_seconds
        while not self._try():
            if time.monotonic() > deadline:
                raise CannotRun(f"checkpoint {self._folder} is in use by another job")
            time.sleep(0.05)

    def release(self) -> None:
        """Let another job take the lock, also while the JVM of this one still runs."""
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def _try(self) -> bool:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def checkpoint_lock(folder: Path) -> Iterator[CheckpointLock]:
    """The lock of a local checkpoint, not acquired yet; the folder is created."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        yield CheckpointLock(folder, file.fileno())


def is_locked(folder: Path) -> bool:
    """Whether a job runs on a local checkpoint, as far as this user may see."""
    try:
        with (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
