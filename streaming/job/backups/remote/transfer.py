"""What of a checkpoint or a backup travels, and in which order, so that an interruption leaves nothing that starts."""

import os
import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.job.backups.backup import OWN_FOLDERS, PROGRESS_FILES
from streaming.job.backups.manifest import CHECKPOINT, MANIFEST
from streaming.job.backups.placement import ASIDE_FORMAT, Report
from streaming.job.checkpoints.lock import LOCKS
from streaming.job.checkpoints.store_folder import StoredFile, StoreFolder, Vanished
from streaming.job.spark_internals.checkpoint_layout.needed_files import UnreadableCheckpoint, needed_files

OFFSETS, COMMITS, STATE = "offsets", "commits", "state"

ATTEMPTS = 3
"""How often a copy begins again because a job has deleted old files meanwhile."""

Files = dict[str, StoredFile]


def bring(folder: StoreFolder, local: Path, report: Report) -> None:
    """Copy a backup to a place on this machine, or what the newest complete batch of a checkpoint needs.

    Of a folder of backups, only the manifests are copied. Without files, the place does not exist afterwards.

    Raises:
        CannotRun: the store refuses or does not answer, or a job deletes the files sooner than they can be copied.
    """
    for _attempt in range(ATTEMPTS):
        try:
            _bring(folder, local, report)
        except Vanished as vanished:
            report(f"{vanished} was deleted meanwhile: beginning again with a newer batch")
            shutil.rmtree(local, ignore_errors=True)
        else:
            return
    raise CannotRun(f"{folder.location}: a job deletes files sooner than they can be copied: stop it, or try again")


def _bring(folder: StoreFolder, local: Path, report: Report) -> None:
    # First, because a batch has all its files once it is complete.
    commits = folder.within(COMMITS).files()
    files = folder.files()
    if MANIFEST in files:
        _download(folder, files, local, report)
    elif manifests := [path for path in files if path.endswith(f"/{MANIFEST}")]:
        _download(folder, manifests, local, report)
    elif files:
        local.mkdir(parents=True)
        if any(path.startswith(f"{CHECKPOINT}/") for path in files):
            (local / CHECKPOINT).mkdir()
        _bring_checkpoint(folder, files, _batches(commits), local, report)


def _bring_checkpoint(folder: StoreFolder, files: Files, complete: list[int], local: Path, report: Report) -> None:
    """Copy the files that tell which others are needed, then those. In place of the others are empty ones at first."""
    newest = max(complete, default=None)
    telling, large = [], []
    for path, file in files.items():
        top, _, name = path.partition("/")
        if top in (OFFSETS, COMMITS):
            least = 0 if newest is None else newest - (top == OFFSETS)
            if name.isdigit() and int(name) >= least and (top == OFFSETS or int(name) == newest):
                telling.append(path)
            elif top == COMMITS and name.isdigit() and (newest is None or int(name) < newest):
                _place_holder(local / path, file)
        elif top == STATE and path.endswith((".delta", ".snapshot", ".sst", ".log")):
            large.append(path)
        elif top in (STATE, "sources", "metadata", *OWN_FOLDERS):
            telling.append(path)
    _download(folder, telling, local, report)
    for path in large:
        _place_holder(local / path, files[path])
    if newest is None:
        return
    try:
        needed = needed_files(local, newest)
    except UnreadableCheckpoint:
        # The command finds it, too, and says what it means.
        return
    for path in set(large).difference(needed.present):
        (local / path).unlink()
    _download(folder, [path for path in large if path in needed.present], local, report)


def bring_names(folder: StoreFolder, local: Path, report: Report) -> None:
    """What a list of backups or batches needs: the manifests, or the names and times of the complete batches."""
    files = folder.files()
    _download(folder, [path for path in files if path.rpartition("/")[2] == MANIFEST], local, report)
    for path, file in files.items():
        if path.startswith(f"{COMMITS}/"):
            _place_holder(local / path, file)


def require_free_place(folder: StoreFolder) -> None:
    """Check that a place in a store has no checkpoint and nothing else. Raises CannotRun."""
    files = folder.files()
    tops = sorted({path.partition("/")[0] for path in files})
    if {OFFSETS, COMMITS, STATE} & set(tops):
        raise CannotRun(f"{folder.location} has a checkpoint, or a part of one: move it away first, or name another")
    if tops:
        raise CannotRun(f"{folder.location} is not empty: it has {', '.join(tops[:3])}")


def put_checkpoint(local: Path, folder: StoreFolder, report: Report) -> None:
    """Copy a checkpoint of this machine to a place in a store, which is free.

    The plans follow last, the newest one first: no job starts with a part of a checkpoint. Raises CannotRun.
    """
    _upload(local, in_safe_order(_names(local)), folder, report)


def put_backup(local: Path, folder: StoreFolder, report: Report) -> None:
    """Copy a finished backup of this machine to a place in a store; its manifest follows last. Raises CannotRun."""
    _upload(local, [*(name for name in _names(local) if name != MANIFEST), MANIFEST], folder, report)


def put_aside(folder: StoreFolder, now: datetime, report: Report) -> StoreFolder:
    """Move a checkpoint beside its place; returns where it is now. Raises CannotRun.

    A store renames file by file. So it is copied, and then deleted, the plans first: whenever this is interrupted, the
    checkpoint is complete in one of the two places, and no job starts with a part of it in the other.
    """
    aside = folder.beside(f".{now.strftime(ASIDE_FORMAT)}")
    report(f"copying the former checkpoint to {aside.location}")
    for path in in_safe_order(folder.files()):
        folder.copy_to(aside, path)
    folder.delete(OFFSETS)
    folder.delete()
    return aside


def in_safe_order(paths: Iterable[str]) -> list[str]:
    """The files of a checkpoint in the order in which they may appear in its place.

    Spark begins with the newest plan, and needs the one before it: without plans, or without that one, a job refuses.
    """

    def place(path: str) -> tuple[bool, int]:
        top, _, name = path.partition("/")
        return top == OFFSETS, -int(name) if top == OFFSETS and name.isdigit() else 0

    return sorted(paths, key=place)


def _download(folder: StoreFolder, paths: Iterable[str], local: Path, report: Report) -> None:
    paths = list(paths)
    for count, path in enumerate(paths, 1):
        folder.download(path, local / path)
        if count % PROGRESS_FILES == 0:
            report(f"{count} of {counted(len(paths), 'file')}")


def _upload(local: Path, names: list[str], folder: StoreFolder, report: Report) -> None:
    report(f"copying {counted(len(names), 'file')} to {folder.location}")
    for count, name in enumerate(names, 1):
        folder.upload(local / name, name)
        if count % PROGRESS_FILES == 0:
            report(f"{count} of {counted(len(names), 'file')}")
    found = folder.files()
    for name in names:
        if name not in found or found[name].size != (local / name).stat().st_size:
            raise CannotRun(f"{folder.location} has not kept {name} as it was written: remove it, and try again")


def _names(local: Path) -> list[str]:
    found = (path.relative_to(local).as_posix() for path in sorted(local.rglob("[!.]*")) if path.is_file())
    return [name for name in found if name not in LOCKS]


def _batches(files: Files) -> list[int]:
    return [int(name) for name in files if name.isdigit()]


def _place_holder(path: Path, file: StoredFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (file.written_at / 1000, file.written_at / 1000))
