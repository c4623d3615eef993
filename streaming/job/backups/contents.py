"""What a folder of backups, a backup or a checkpoint holds."""

from pathlib import Path

import msgspec

from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.job.backups.backup import finished_backups
from streaming.job.backups.manifest import read_manifest


class HeldBatch(msgspec.Struct, frozen=True, rename="camel"):
    """A complete batch from which a job can go on, or could if its files are still there.

    ``folder`` is the backup or the checkpoint that has it. ``taken_at`` is when the backup was taken or when Spark
    completed the batch, ms since the epoch. ``files``, ``size`` (bytes) and ``version`` are a manifest's.
    """

    folder: str
    batch: int
    taken_at: int
    files: int | None = None
    size: int | None = None
    version: str | None = None


def batches_in(folder: Path) -> list[HeldBatch]:
    """The batches that a folder holds, oldest first.

    Raises:
        CannotRun: it is no folder of backups, no backup and no checkpoint; or a manifest cannot be read.
    """
    held = [_of_backup(backup) for backup in finished_backups(folder) or [folder]]
    found = [batch for batch in held if batch is not None] or _of_checkpoint(folder)
    if not found:
        raise CannotRun(f"{folder} holds no backup, and no batch of a job")
    return found


def _of_backup(backup: Path) -> HeldBatch | None:
    """The batch of a backup; None for a folder that is none, or that is not finished."""
    manifest = read_manifest(backup)
    if manifest is None:
        return None
    files, size, version = len(manifest.files), manifest.size, manifest.versions.project
    return HeldBatch(str(backup), manifest.batch, manifest.taken_at, files, size, version)


def _of_checkpoint(folder: Path) -> list[HeldBatch]:
    commits = sorted(
        (path for path in folder.glob("commits/*") if path.name.isdigit()), key=lambda path: int(path.name)
    )
    return [HeldBatch(str(folder), int(path.name), int(path.stat().st_mtime * 1000)) for path in commits]


def several_backups(folder: Path, backups: list[Path], verb: str) -> CannotRun:
    """The error for a folder of backups in place of one: which one there is, or which is the newest."""
    is_one = len(backups) == 1
    advice = f"{verb} {backups[0]}" if is_one else f"{verb} one of them, the newest is {backups[-1]}"
    return CannotRun(f"{folder} holds {counted(len(backups), 'backup')}: {advice}")
