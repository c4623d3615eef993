"""Moments of a batch that the files of its checkpoint tell, seen from outside.

Spark writes ``offsets/N`` when it has planned batch N. Its task writes rows to the sink while it writes the state's
version N + 1 under a temporary name, and renames that when the last row was written. ``commits/N`` follows, when every
row was delivered. Snapshots of the state are written beside the batches.
"""

import ctypes
import os
import re
import select
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self

TEMPORARY = re.compile(r"\.(\d+)(?:_[^.]*)?\.(delta|changelog|snapshot|zip)\..*tmp")
FINAL = re.compile(r"(\d+)(?:_[^.]*)?\.(?:delta|changelog)")
OF_SNAPSHOTS = frozenset({"snapshot", "zip"})


class Point(StrEnum):
    """A moment."""

    PLANNED = "the batch is planned, and nothing is written"
    STATE_COMMIT = "the state's new version is being written"
    WRITTEN = "all rows and the state are written, and the batch is not complete"
    SNAPSHOT = "a snapshot of the state is being written"


class Sight(NamedTuple):
    """The files of a checkpoint at one moment.

    planned, complete: the newest batch in ``offsets`` and in ``commits``, -1 for none. written: for each partition of
    the state, its newest version. temporary: the versions of the state that have a temporary file; snapshots: the same
    of snapshots.
    """

    planned: int
    complete: int
    written: tuple[int, ...]
    temporary: frozenset[int]
    snapshots: frozenset[int]

    def is_at(self, point: Point) -> bool:
        """Whether this is such a moment."""
        is_open = self.planned > self.complete
        version = self.planned + 1
        match point:
            case Point.PLANNED:
                return is_open and version not in self.temporary and max(self.written, default=0) < version
            case Point.STATE_COMMIT:
                return is_open and version in self.temporary
            case Point.WRITTEN:
                return is_open and bool(self.written) and min(self.written) >= version
            case Point.SNAPSHOT:
                return bool(self.snapshots)


def see(checkpoint: Path) -> Sight:
    """Look at a checkpoint."""
    # In this order, a batch that ends meanwhile seems complete, never open.
    planned = _newest(checkpoint / "offsets")
    written: list[int] = []
    temporary: set[int] = set()
    snapshots: set[int] = set()
    for folder in state_folders(checkpoint):
        versions = [0]
        for name in _names(folder):
            if final := FINAL.fullmatch(name):
                versions.append(int(final[1]))
            elif unfinished := TEMPORARY.fullmatch(name):
                (snapshots if unfinished[2] in OF_SNAPSHOTS else temporary).add(int(unfinished[1]))
        written.append(max(versions))
    complete = _newest(checkpoint / "commits")
    return Sight(planned, complete, tuple(written), frozenset(temporary), frozenset(snapshots))


def state_folders(checkpoint: Path) -> list[Path]:
    """The folders of the state's partitions."""
    return sorted(path for path in (checkpoint / "state").glob("[0-9]*/[0-9]*") if path.is_dir())


def _newest(folder: Path) -> int:
    return max((int(name) for name in _names(folder) if name.isdigit()), default=-1)


def _names(folder: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return os.listdir(folder)
    return []


# ---- waiting for a moment --------------------------------------------------------------------------------------

_EVENT = struct.Struct("iIII")
_IN_CREATE, _IN_MOVED_TO = 0x100, 0x80


class FolderWatch:
    """Tells at once when a file is made or renamed in one of these folders, with Linux's inotify."""

    def __init__(self, folders: list[Path]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        for folder in folders:
            if self._libc.inotify_add_watch(self._file, os.fsencode(folder), _IN_CREATE | _IN_MOVED_TO) < 0:
                os.close(self._file)
                raise OSError(ctypes.get_errno(), f"inotify_add_watch {folder}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._file)

    def wait(self, seconds: float) -> bool:
        """Wait for a change, at most so long; returns whether there was one."""
        ready, _, _ = select.select([self._file], [], [], seconds)
        if ready:
            os.read(self._file, 64 * (_EVENT.size + os.pathconf("/", "PC_NAME_MAX")))
        return bool(ready)


def changes(checkpoint: Path, seconds: float) -> Iterator[None]:
    """Yield now, and after each change of the files that tell a moment, for so long."""
    deadline = time.monotonic() + seconds
    folders = [checkpoint / "offsets", checkpoint / "commits", *state_folders(checkpoint)]
    with FolderWatch([folder for folder in folders if folder.is_dir()]) as watch:
        yield
        while (left := deadline - time.monotonic()) > 0:
            if watch.wait(left):
                yield


def caught_at(
    point: Point, checkpoint: Path, stop: Callable[[], None], go_on: Callable[[], None], seconds: float
) -> bool:
    """Stop a process at such a moment; returns False if that did not succeed within the time.

    ``stop`` and ``go_on`` are SIGSTOP and SIGCONT for it. A moment counts only if it is still there when the process
    is stopped: what it is about to do, it has not done then.
    """
    for _ in changes(checkpoint, seconds):
        if see(checkpoint).is_at(point):
            stop()
            if see(checkpoint).is_at(point):
                return True
            go_on()
    return False
