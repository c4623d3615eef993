"""A small disk of its own for a checkpoint, which can be full."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path

SIZE_MIB = 64
MOUNT_LIMIT_SECONDS = 10.0
CHUNK = bytes(64 * 1024)


class NoMount(Exception):
    """A file system cannot be mounted here."""


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a file system in memory at ``folder`` until the end of the block. Raises NoMount."""
    if os.geteuid() != 0:
        raise NoMount("mounting a small file system needs root")
    folder.mkdir(parents=True, exist_ok=True)
    mounted = _run("mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "none", str(folder))
    if mounted.returncode != 0:
        raise NoMount(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        # Also with open files: their processes end soon.
        _run("umount", "--lazy", str(folder))


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Fill the disk of a folder until the end of the block. Only for one that :func:`small_disk` has mounted."""
    assert folder.is_mount(), f"{folder} is not a disk of its own"
    filler = folder / "filler"
    try:
        with suppress(_Full), filler.open("wb", buffering=0) as file:
            while True:
                _write(file.fileno())
        yield
    finally:
        filler.unlink(missing_ok=True)


class _Full(Exception):
    pass


def _write(file: int) -> None:
    try:
        os.write(file, CHUNK)
    except OSError as error:
        if error.errno != ENOSPC:
            raise
        raise _Full from error


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=MOUNT_LIMIT_SECONDS, check=False)
