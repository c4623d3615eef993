"""Locks on folders, in files that name the process that holds them.

A lock lasts until every process that has inherited its descriptor has ended, also by ``kill -9``. So a child that
outlives its parent keeps the folder.
"""

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import IO

import msgspec

from streaming.contract.errors import CannotRun
from streaming.embedded.process_identity import has_ended, process_identity

PROGRAM = "group-coordinator"

FOLDER_LOCK = ".lock"

LONGEST_NOTE_BYTES = 4096

ORPHANS_LIMIT_SECONDS = 20.0
"""How long :func:`folder_lock` waits for the children of a process that was killed: they shut down in order."""

POLL_SECONDS = 0.05


class _Holder(msgspec.Struct):
    """What the file of a lock says of the process that acquired it last."""

    process_id: int
    command: str
    host: str
    identity: str | None = None


def open_lock(path: Path) -> IO[bytes]:
    """Open the file of a lock, and leave what it says of its holder."""
    return path.open("a+b")


def try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Acquire a lock if that is possible now; returns whether it was. The file then does not name this process yet."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def name_holder(descriptor: int) -> None:
    """Write into the file of a lock that this process holds it."""
    note = msgspec.json.encode(_Holder(os.getpid(), _command(), os.uname().nodename, process_identity()))
    # Cleared first: the file is open for appending.
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, note, 0)


def holder(descriptor: int) -> str:
    """Name the process that holds a lock, for a message: ``process 1234 (group-coordinator broker)``."""
    found = _noted(descriptor)
    if found is None:
        return "another process"
    host = "" if found.host == os.uname().nodename else f" on {found.host}"
    name = f"process {found.process_id} ({found.command}){host}"
    return f"a child of {name}, which has ended" if has_ended(found.identity) else name


@contextmanager
def folder_lock(folder: Path) -> Iterator[int]:
    """Hold the one lock of an existing folder; yields its descriptor, for children to inherit.

    If its holder was killed, its children are given :data:`ORPHANS_LIMIT_SECONDS` to end.

    Raises:
        CannotRun: another process holds the lock, or the folder cannot be written.
    """
    try:
        opened = open_lock(folder / FOLDER_LOCK)
    except OSError as failure:
        raise CannotRun(f"{folder} cannot be written: {failure.strerror}") from None
    with opened as file:
        deadline = time.monotonic() + ORPHANS_LIMIT_SECONDS
        while not try_lock(file.fileno()):
            found = _noted(file.fileno())
            if found is None or not has_ended(found.identity) or time.monotonic() > deadline:
                raise CannotRun(f"{folder} is in use by {holder(file.fileno())}")
            time.sleep(POLL_SECONDS)
        name_holder(file.fileno())
        yield file.fileno()


def require_unused(folder: Path | None) -> None:
    """Check that no process holds the lock of a folder, which may not exist, before anything is made for it.

    Raises:
        CannotRun: a process does, and it was not killed. The message names it.
    """
    if folder is not None and (folder / FOLDER_LOCK).exists():
        with folder_lock(folder):
            pass


def _noted(descriptor: int) -> _Holder | None:
    """What the file of a lock says; None if its holder writes it right now, or a program that writes nothing has it."""
    try:
        return msgspec.json.decode(os.pread(descriptor, LONGEST_NOTE_BYTES, 0), type=_Holder)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _command() -> str:
    """This process's command without its options, whose values may be passwords."""
    program = Path(sys.argv[0])
    is_ours = program.name == PROGRAM or program.parent.name == "cli"
    words = takewhile(lambda word: not word.startswith("-"), sys.argv[1:])
    return " ".join([PROGRAM, *words]) if is_ours else program.name
