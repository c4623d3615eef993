"""The one folder for everything temporary of a process and its JVM; what a killed process leaves is cleared later."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from streaming.embedded.interruption import cleaned_up_when_ended

PREFIX = "group-coordinator-"

UNFINISHED_PREFIX = "unfinished-group-coordinator-"
"""Of a folder whose lock is not held yet."""

LOCK = "owner.lock"
"""The file in a folder whose lock its owner holds, and the JVM that inherits it."""


class TemporaryFolder(NamedTuple):
    """A folder that only this user can read; ``descriptor`` holds its lock, and a child process may inherit it."""

    path: Path
    descriptor: int


@contextmanager
def temporary_folder() -> Iterator[TemporaryFolder]:
    """A new folder, which is removed with the block; clears what killed processes of this user have left, too.

    A folder belongs to a dead process if nobody holds its lock. A process id could be that of another process by now,
    or of another container.
    """
    clear_leftovers()
    unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED_PREFIX))
    with (unfinished / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # With its name, others see it: from now on, it is locked.
        path = unfinished.rename(unfinished.with_name(unfinished.name.replace(UNFINISHED_PREFIX, PREFIX)))
        with cleaned_up_when_ended(lambda: _remove(path)):
            try:
                yield TemporaryFolder(path, lock.fileno())
            finally:
                # A killed JVM may still write for a moment.
                _remove(path)


def clear_leftovers() -> None:
    """Remove the folders of dead processes of this user."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if path.is_symlink() or path.stat().st_uid != os.getuid():
                continue
            with (path / LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)


def _remove(path: Path) -> None:
    """Remove a folder as far as possible; its lock goes last, since a folder without one is not cleared later."""
    for entry in path.iterdir():
        if entry.name == LOCK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    with suppress(OSError):
        if [entry.name for entry in path.iterdir()] == [LOCK]:
            (path / LOCK).unlink()
            path.rmdir()
