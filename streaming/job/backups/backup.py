"""Take a backup of a local checkpoint, also while the job runs on it.

Each backup is a folder of its own in the target, named for its time and batch, and can be restored without the others.
A file that the target's file system already has, in the checkpoint or in the newest backup, is linked instead of
copied: Spark never changes a file of a checkpoint. A backup that is killed has no manifest; the next one removes it.
"""

import os
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from streaming.contract.errors import CannotRun
from streaming.contract.folders import require_writable
from streaming.contract.output.text import counted
from streaming.embedded.folder_lock import folder_lock
from streaming.job.backups.manifest import (
    CHECKPOINT,
    MANIFEST,
    BackupFile,
    Manifest,
    fingerprint,
    present_versions,
    read_manifest,
    sync_folder,
    sync_tree,
    write_manifest,
)
from streaming.job.backups.placement import Report
from streaming.job.checkpoints.checkpoint import STARTS_FOLDER, TOPIC_FOLDER
from streaming.job.checkpoints.local_folder import LocalFolder
from streaming.job.spark_internals.checkpoint_layout.needed_files import (
    NeededFiles,
    UnreadableCheckpoint,
    needed_files,
    newest_complete_batch,
)
from streaming.job.spark_internals.checkpoint_layout.start_check import DamagedFile, check_contents

OWN_FOLDERS = (STARTS_FOLDER, TOPIC_FOLDER)
"""The job's own folders in a checkpoint: a file for each start, and an empty one whose name is the topic's id."""

NAME_FORMAT = "%Y-%m-%dT%H-%M-%S.%fZ"
NAME_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}Z-batch-\d+")
"""The name of a backup. What else a user keeps in the target is left alone."""

PROGRESS_FILES = 1000
"""A line of progress follows so many files."""


class Taken(msgspec.Struct, frozen=True, rename="camel"):
    """A finished backup; the bytes of all its files, and of those that had to be copied."""

    folder: str
    batch: int
    files: int
    size: int
    copied: int


class _Earlier(NamedTuple):
    """The newest finished backup of the target."""

    folder: Path
    batch: int
    files: dict[str, BackupFile]


def back_up(checkpoint: Path, target: Path, keep: int | None, now: datetime, report: Report) -> Taken:
    """Copy what the newest complete batch of ``checkpoint`` needs into a new folder in ``target``.

    Afterwards only the newest ``keep`` backups are left; None keeps all. While the job completes no batch, backups of
    the same one do not replace older ones. ``now`` is in UTC.

    Raises:
        CannotRun: the checkpoint has no complete batch, lacks files, or cannot be read to its end; the target cannot be
            written, or another process takes a backup there.
    """
    if newest_complete_batch(checkpoint) is None:
        raise CannotRun(f"{checkpoint} has no complete batch: it is not a checkpoint, or its job has not yet started")
    if target.resolve().is_relative_to(checkpoint.resolve()):
        raise CannotRun(f"{target} is in the checkpoint: choose a folder outside of it")
    require_writable(target)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with folder_lock(target):
            for folder in _backups(target):
                if not (folder / MANIFEST).exists():
                    report(f"removing {folder.name}: it was not finished")
                    shutil.rmtree(folder)
            earlier = _newest(target, report)
            taken = _take(checkpoint, target, earlier, now, report)
            if keep is not None and earlier is not None and earlier.batch == taken.batch:
                report(f"no backup is removed: {earlier.folder.name} has the same batch")
            elif keep is not None:
                for old in finished_backups(target)[:-keep]:
                    report(f"removing {old.name}")
                    _remove(old)
            return taken
    except OSError as error:
        raise CannotRun(f"the backup failed: {error}") from error


def finished_backups(target: Path) -> list[Path]:
    """The folders of the finished backups in a target, oldest first."""
    return [path for path in _backups(target) if (path / MANIFEST).exists()]


def _needed_of_newest(checkpoint: Path) -> NeededFiles:
    """The files of the newest complete batch; finds them again while Spark deletes some of an older batch meanwhile.

    Raises:
        CannotRun: there is no complete batch, a file is missing, or one cannot be read.
    """
    tried = None
    while (batch := newest_complete_batch(checkpoint)) != tried and batch is not None:
        problem = ""
        try:
            needed = needed_files(checkpoint, batch)
        except UnreadableCheckpoint as unreadable:
            problem = str(unreadable)
        else:
            if not needed.missing:
                return needed
            problem = f"batch {batch} needs {', '.join(needed.missing)}, which it does not have"
        tried = batch
    raise CannotRun(f"checkpoint {checkpoint}: {problem}")


def _take(checkpoint: Path, target: Path, earlier: _Earlier | None, now: datetime, report: Report) -> Taken:
    tried = None
    while True:
        needed = _needed_of_newest(checkpoint)
        folder = target / f"{now.strftime(NAME_FORMAT)}-batch-{needed.batch}"
        report(f"backing up batch {needed.batch} to {folder}")
        try:
            return _copy_all(checkpoint, needed, folder, earlier, now, report)
        except FileNotFoundError as vanished:
            shutil.rmtree(folder, ignore_errors=True)
            if needed.batch == tried:
                raise CannotRun(f"checkpoint {checkpoint}: {vanished.filename} is gone") from vanished
            report(f"Spark has deleted {vanished.filename} meanwhile: beginning again with a newer batch")
            tried = needed.batch


def _copy_all(
    checkpoint: Path, needed: NeededFiles, folder: Path, earlier: _Earlier | None, now: datetime, report: Report
) -> Taken:
    names = [*needed.present, *_own_files(checkpoint)]
    root = folder / CHECKPOINT
    root.mkdir(parents=True)
    files: dict[str, BackupFile] = {}
    copied = 0
    for count, name in enumerate(names, 1):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        files[name], was_copied = _bring(checkpoint / name, root / name, earlier, name)
        copied += files[name].size if was_copied else 0
        if count % PROGRESS_FILES == 0:
            report(f"{count} of {counted(len(names), 'file')}")
    _check_copy(folder, checkpoint)
    sync_tree(folder)
    manifest = Manifest(
        needed.batch, int(now.timestamp() * 1000), str(checkpoint.absolute()), present_versions(), files
    )
    write_manifest(folder, manifest)
    return Taken(str(folder), needed.batch, len(files), manifest.size, copied)


def _check_copy(folder: Path, checkpoint: Path) -> None:
    """Check that a job could start with the copy; else it is removed. Raises CannotRun.

    A power failure leaves files that are empty or cut: a backup of them must not replace those that are whole.
    """
    try:
        check_contents(LocalFolder(folder / CHECKPOINT))
    except DamagedFile as damaged:
        shutil.rmtree(folder)
        raise CannotRun(f"checkpoint {checkpoint} is damaged: {damaged}: there is no new backup") from damaged


def _bring(source: Path, destination: Path, earlier: _Earlier | None, name: str) -> tuple[BackupFile, bool]:
    """Link or copy a file; returns what the backup has, and whether it was copied."""
    if _is_linked(source, destination):
        return fingerprint(destination), False
    file = fingerprint(source)
    if earlier is not None and earlier.files.get(name) == file:
        copied_before = earlier.folder / CHECKPOINT / name
        if copied_before.exists() and _is_linked(copied_before, destination):
            # The disk of the backups may have damaged it since.
            if fingerprint(destination) == file:
                return file, False
            destination.unlink()
    shutil.copyfile(source, destination)
    return file, True


def _is_linked(source: Path, link: Path) -> bool:
    """Link a file if it has the same file system as ``link``, and the system allows it."""
    try:
        os.link(source, link)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def _own_files(checkpoint: Path) -> Iterator[str]:
    for folder in OWN_FOLDERS:
        # Hadoop writes hidden files with checksums; the manifest has others.
        yield from (f"{folder}/{path.name}" for path in sorted(checkpoint.glob(f"{folder}/[!.]*")))


def _newest(target: Path, report: Report) -> _Earlier | None:
    for folder in reversed(finished_backups(target)):
        try:
            manifest = read_manifest(folder)
        except CannotRun as unreadable:
            report(f"warning: {unreadable}")
            continue
        if manifest is not None:
            return _Earlier(folder, manifest.batch, manifest.files)
    return None


def _backups(target: Path) -> list[Path]:
    return sorted(path for path in target.glob("*-batch-*") if NAME_PATTERN.fullmatch(path.name) and path.is_dir())


def _remove(backup: Path) -> None:
    """Remove a backup. Without its manifest it is unfinished, so a kill leaves nothing that looks complete."""
    (backup / MANIFEST).unlink()
    sync_folder(backup)
    shutil.rmtree(backup)
