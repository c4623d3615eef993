"""Put a new checkpoint in its place, all at once.

It is made in a folder beside the place, ``NAME.unfinished``, and then renamed. So no job takes for a checkpoint what a
killed command leaves behind, and the next command removes it. The locks of the place are held meanwhile: no job and no
other command can use it.
"""

import ctypes
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from streaming.contract.errors import CannotRun
from streaming.job.backups.manifest import sync_folder, sync_tree
from streaming.job.checkpoints.damage import check_damage
from streaming.job.checkpoints.local_folder import LocalFolder
from streaming.job.checkpoints.lock import LOCKS, checkpoint_lock, remove_if_empty, remove_locks

UNFINISHED = ".unfinished"
"""What the name of the folder beside a checkpoint ends with."""

ASIDE_FORMAT = "%Y-%m-%dT%H-%M-%SZ"

_SAME_FOLDER, _EXCHANGE = -100, 2
"""``AT_FDCWD`` and ``RENAME_EXCHANGE`` of Linux."""

Report = Callable[[str], None]


@contextmanager
def locked_place(checkpoint: Path) -> Iterator[None]:
    """Hold the locks of a place for a checkpoint. A place without one is as before if nothing is put there.

    Raises:
        CannotRun: a job or another command uses the place, or it cannot be written.
    """
    existed = checkpoint.exists()
    with ExitStack() as stack:
        with writing(checkpoint):
            lock = stack.enter_context(checkpoint_lock(checkpoint))
        try:
            lock.acquire_alone()
        except CannotRun as in_use:
            raise CannotRun(f"{in_use}: stop it first") from in_use
        try:
            yield
        finally:
            if not existed:
                remove_if_empty(checkpoint)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise CannotRun, with the folder and the reason, where the block raises OSError."""
    try:
        yield
    except OSError as error:
        raise CannotRun(f"{folder} cannot be written: {error.strerror or error}") from error


def require_free(checkpoint: Path) -> None:
    """Check that a place has no checkpoint and nothing else.

    Raises:
        CannotRun: it has.
    """
    require_replaceable(checkpoint)
    found = _names(checkpoint) - set(LOCKS)
    if {"offsets", "commits", "state"} & found:
        raise CannotRun(f"{checkpoint} has a checkpoint: move it away first, for example to {_aside(checkpoint)}")
    if found:
        raise CannotRun(f"{checkpoint} is not empty: it has {', '.join(sorted(found)[:3])}")


def require_replaceable(checkpoint: Path) -> None:
    """Check that another folder can be put in a place. Raises CannotRun."""
    if os.path.ismount(checkpoint):
        raise CannotRun(f"{checkpoint} is a mount point, and cannot be replaced: choose a folder in it")


@contextmanager
def unfinished_folder(checkpoint: Path, report: Report) -> Iterator[Path]:
    """A new folder beside a place whose lock is held. It is removed at the end, whatever is left in it."""
    folder = checkpoint.with_name(checkpoint.name + UNFINISHED)
    if folder.exists():
        report(f"removing {folder}: an earlier command was interrupted")
        with writing(folder):
            shutil.rmtree(folder)
    with writing(folder):
        folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place(new: Path, checkpoint: Path) -> None:
    """Put a complete checkpoint into a place that :func:`require_free` has accepted, and whose lock is held.

    Raises:
        CannotRun: a job could not start with it, or the place was used meanwhile.
    """
    with writing(checkpoint):
        _complete(new, checkpoint)
        remove_locks(checkpoint)
        new.rename(checkpoint)
        sync_folder(checkpoint.parent)


def replace(new: Path, checkpoint: Path) -> Path:
    """Put a complete checkpoint into the place of another one, whose lock is held; returns where the other one is now.

    Raises:
        CannotRun: a job could not start with the new one.
    """
    with writing(checkpoint):
        _complete(new, checkpoint)
        aside = _aside(checkpoint)
        # In this order, a command that is killed leaves the former checkpoint where it was, or aside.
        new.rename(aside)
        if not _exchange(aside, checkpoint):
            former = checkpoint.with_name(f"{aside.name}-former")
            checkpoint.rename(former)
            aside.rename(checkpoint)
            aside = former
        # Else the former checkpoint would seem to be in use while a job runs on the new one.
        remove_locks(aside)
        sync_folder(checkpoint.parent)
    return aside


def _complete(new: Path, checkpoint: Path) -> None:
    """Check a checkpoint, write it to the disk, and let its locks be those that are held."""
    check_damage(LocalFolder(new), str(new))
    sync_tree(new)
    remove_locks(new)
    for name in LOCKS:
        os.link(checkpoint / name, new / name)


def _aside(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.{datetime.now(UTC).strftime(ASIDE_FORMAT)}")


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders at once; False if the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(rename(_SAME_FOLDER, names[0], _SAME_FOLDER, names[1], _EXCHANGE) == 0)
