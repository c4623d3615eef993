"""A backup's folder: the files of the checkpoint in ``checkpoint``, and ``manifest.json``, which is written last."""

import hashlib
import importlib.metadata
import os
from pathlib import Path

import msgspec

from coordinator_logic.snapshot import FORMAT_VERSION
from streaming.contract.errors import CannotRun

MANIFEST = "manifest.json"
CHECKPOINT = "checkpoint"
"""The folder of a backup that is a checkpoint: a copy of it, in place of the job's checkpoint, can be started."""


class BackupFile(msgspec.Struct, frozen=True, rename="camel"):
    """A file of a backup: its size in bytes and its SHA-256, hexadecimal."""

    size: int
    sha256: str


class Versions(msgspec.Struct, frozen=True, rename="camel"):
    """The versions of what made a backup."""

    project: str
    spark: str
    snapshot_format: int


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """What a backup holds. ``batch`` is the last complete one; ``taken_at`` is ms since the epoch."""

    batch: int
    taken_at: int
    checkpoint: str
    versions: Versions
    files: dict[str, BackupFile]
    """By the path relative to :data:`CHECKPOINT`."""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files.values())


def present_versions() -> Versions:
    """The versions that are installed here."""
    version = importlib.metadata.version
    return Versions(version("spark-group-coordinator"), version("pyspark"), FORMAT_VERSION)


def read_manifest(backup: Path) -> Manifest | None:
    """The manifest of a backup; None for a backup that is not finished.

    Raises:
        CannotRun: the manifest cannot be read.
    """
    try:
        return msgspec.json.decode((backup / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CannotRun(f"{backup / MANIFEST} cannot be read: {error}") from error


def write_manifest(backup: Path, manifest: Manifest) -> None:
    """Write the manifest, which finishes the backup: it is complete on the disk, or not there."""
    temporary = backup / f".{MANIFEST}.tmp"
    with temporary.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest)))
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(backup / MANIFEST)
    sync_folder(backup)


def fingerprint(path: Path) -> BackupFile:
    """The size and the hash of a file. Raises OSError."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return BackupFile(file.tell(), digest.hexdigest())


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Write all files of a folder to the disk, linked ones too: Spark does not."""
    folders = [folder.parent, folder]
    for path in folder.rglob("*"):
        if path.is_dir():
            folders.append(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    for path in folders:
        sync_folder(path)
