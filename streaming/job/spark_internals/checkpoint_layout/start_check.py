"""The files of a checkpoint that Spark needs to start: which of them are lost or damaged.

Spark begins with the newest plan in ``offsets``, batch N. If ``commits`` has N too, the next batch is N + 1, on version
N + 1 of the state; else N runs again, on version N. Spark also needs the plan before N, ``metadata``, the schema of the
state, and the files that make up the version (:mod:`.state_files`). Nothing older matters.

Spark notices most damage itself. But its exceptions name another cause ("Concurrent update") or no file, and some come
after it has begun to write. A snapshot of a lost batch goes unnoticed: a later start would go back to it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple, Protocol

import msgspec

from streaming.job.spark_internals.checkpoint_layout.state_files import (
    LZ4_END_BYTES,
    STATE_FOLDER,
    files_of_version,
    is_complete,
    is_compressed,
    is_snapshot,
    state_ids,
    version_of,
)
from streaming.job.spark_internals.offset_log import BatchPlan, UnreadablePlan, read_batch_plan
from streaming.job.state_stores import store_of

OFFSETS, COMMITS, METADATA, SCHEMA = "offsets", "commits", "metadata", f"{STATE_FOLDER}/0/_metadata/schema"

MAX_REMOVED = 12
"""A longer list of files to remove helps nobody."""


class UnreadableFile(Exception):
    """A file cannot be read, for example because it does not fit its checksum."""


class CheckpointFolder(Protocol):
    """A checkpoint's folder; paths are relative to it."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, without hidden ones; empty if it does not exist."""

    def size(self, path: str) -> int:
        """The size of an existing file in bytes."""

    def text(self, path: str) -> str:
        """The content of an existing file. Raises UnreadableFile."""

    def read_through(self, path: str, end_bytes: int) -> bytes:
        """Read an existing file of any size; returns its last bytes. Raises UnreadableFile."""


class DamagedFile(Exception):
    """A file that Spark needs is lost or damaged.

    ``removable`` are files without which Spark would write the file again, or begin one batch earlier and read the same
    requests again; empty if nothing of the kind helps.
    """

    def __init__(self, path: str, problem: str, removable: Iterable[str] = ()) -> None:
        super().__init__(f"{path} {problem}")
        self.path = path
        self.removable = tuple(removable)


class _Start(NamedTuple):
    """Where Spark begins."""

    plan: BatchPlan
    newest_batch: int
    newest_files: tuple[str, ...]
    """The files of the newest batch in ``offsets`` and ``commits``."""
    version: int
    """The version of the state."""
    state_ids: Mapping[int, str]
    """RocksDB's id of the version, by state partition; empty with the memory store."""


class _WithoutFiles:
    """A folder as it would be without some files."""

    def __init__(self, folder: CheckpointFolder, removed: Iterable[str]) -> None:
        self._folder = folder
        self._removed = frozenset(removed)
        self.size = folder.size
        self.text = folder.text
        self.read_through = folder.read_through

    def names(self, folder: str) -> list[str]:
        return [name for name in self._folder.names(folder) if f"{folder}/{name}" not in self._removed]


def check_files(folder: CheckpointFolder) -> None:
    """Check that Spark can start with a checkpoint: by names and sizes, and the content of a few small files.

    Raises:
        DamagedFile: it cannot, or it would go on with the wrong state.
    """
    start = _start(folder)
    if start is None:
        return
    _check_schema(folder)
    names = cache(folder.names)
    for path in _state_files(folder, start):
        parent, _, name = path.rpartition("/")
        is_lost = name not in names(parent)
        if is_lost or folder.size(path) == 0:
            raise DamagedFile(path, "is lost" if is_lost else "is empty", start.newest_files)
    if later := list(_later_snapshots(folder, start)):
        problem = f"is of a later batch than {start.newest_batch}, the newest in {OFFSETS}"
        raise DamagedFile(later[0], problem, later)


def check_contents(folder: CheckpointFolder) -> None:
    """Read all files of the state that Spark needs to start, whatever their size.

    Raises:
        DamagedFile: one of them cannot be read, or was not written to its end; or see :func:`check_files`.
    """
    check_files(folder)
    start = _start(folder)
    if start is None:
        return
    for path in _state_files(folder, start):
        try:
            end = folder.read_through(path, LZ4_END_BYTES)
        except UnreadableFile as error:
            raise DamagedFile(path, f"cannot be read: {error}", start.newest_files) from error
        if is_compressed(path) and not is_complete(end):
            raise DamagedFile(path, "was not written to its end", start.newest_files)


def files_to_remove(folder: CheckpointFolder, damaged: DamagedFile) -> tuple[str, ...]:
    """The files without which the checkpoint is in order and loses nothing: Spark reads some requests again.

    Empty if there are no such files, or too many.
    """
    removed: list[str] = []
    found: DamagedFile | None = damaged
    while found is not None:
        removed += found.removable
        if not found.removable or len(removed) > MAX_REMOVED:
            return ()
        try:
            check_files(_WithoutFiles(folder, [*removed, damaged.path]))
            found = None
        except DamagedFile as further:
            found = further
    return tuple(removed)


def _start(folder: CheckpointFolder) -> _Start | None:
    """Where Spark begins; None for a checkpoint without batches. Raises DamagedFile."""
    plans, commits = _batches(folder, OFFSETS), _batches(folder, COMMITS)
    if not plans:
        if commits or _has_state(folder):
            raise DamagedFile(OFFSETS, "is lost or empty, but the checkpoint has batches in its other folders")
        return None
    newest = max(plans)
    if later := sorted(batch for batch in commits if batch > newest):
        removable = [f"{COMMITS}/{batch}" for batch in later]
        raise DamagedFile(f"{OFFSETS}/{later[-1]}", f"is lost, but {COMMITS} has this batch", removable)
    _check_metadata(folder)
    newest_files = (f"{OFFSETS}/{newest}", *([f"{COMMITS}/{newest}"] if newest in commits else []))
    plan = _read_plan(folder, newest, newest_files)
    if newest > 0:
        _read_plan(folder, newest - 1)
    complete = max(commits, default=-1)
    ids = {} if complete < 0 else _read_state_ids(folder, complete)
    version = newest + 1 if complete == newest else newest
    if complete < version - 1 and store_of(plan.state_store_class) == "rocksdb":
        # The ids of the version are nowhere else.
        raise DamagedFile(f"{COMMITS}/{version - 1}", "is lost", newest_files)
    return _Start(plan, newest, newest_files, version, ids)


def _batches(folder: CheckpointFolder, log: str) -> list[int]:
    return [int(name) for name in folder.names(log) if name.isdigit()]


def _has_state(folder: CheckpointFolder) -> bool:
    partitions = [name for name in folder.names(STATE_FOLDER) if name.isdigit()]
    return any(version_of(name) for partition in partitions for name in folder.names(f"{STATE_FOLDER}/{partition}"))


def _check_metadata(folder: CheckpointFolder) -> None:
    """Check ``metadata``: JSON with the query's id."""
    if METADATA not in folder.names("."):
        raise DamagedFile(METADATA, "is lost")
    try:
        msgspec.json.decode(folder.text(METADATA), type=dict[str, str])["id"]
    except (ValueError, KeyError, UnreadableFile) as error:
        raise DamagedFile(METADATA, f"cannot be read: {error}") from error


def _check_schema(folder: CheckpointFolder) -> None:
    """Check the schema of the state, which ends with JSON. Spark writes it again if it is not there."""
    parent, _, name = SCHEMA.rpartition("/")
    if name not in folder.names(parent):
        return
    try:
        if not folder.text(SCHEMA).endswith("}"):
            raise UnreadableFile("it was not written to its end")
    except UnreadableFile as error:
        raise DamagedFile(SCHEMA, f"cannot be read: {error}", [SCHEMA]) from error


def _read_plan(folder: CheckpointFolder, batch: int, removable: Iterable[str] = ()) -> BatchPlan:
    path = f"{OFFSETS}/{batch}"
    if batch not in _batches(folder, OFFSETS):
        raise DamagedFile(path, "is lost")
    try:
        return read_batch_plan(folder.text(path))
    except (UnreadablePlan, UnreadableFile) as error:
        raise DamagedFile(path, f"is not a batch that Spark has planned: {error}", removable) from error


def _read_state_ids(folder: CheckpointFolder, batch: int) -> dict[int, str]:
    path = f"{COMMITS}/{batch}"
    try:
        return state_ids(folder.text(path))
    except (ValueError, UnreadableFile) as error:
        raise DamagedFile(path, f"is not a batch that Spark has completed: {error}", [path]) from error


def _state_files(folder: CheckpointFolder, start: _Start) -> Iterator[str]:
    """The paths of the files of the state that Spark reads first."""
    store = store_of(start.plan.state_store_class)
    if store is None or start.version == 0:
        return
    for partition in range(start.plan.state_partitions):
        parent = f"{STATE_FOLDER}/{partition}"
        # In place of a snapshot that it cannot read, Spark takes the one before and the deltas after that.
        names = [name for name in folder.names(parent) if not is_snapshot(name) or folder.size(f"{parent}/{name}")]
        for name in files_of_version(store, names, start.version, start.state_ids.get(partition)):
            yield f"{parent}/{name}"


def _later_snapshots(folder: CheckpointFolder, start: _Start) -> Iterator[str]:
    """The snapshots of batches after the newest one, with which a later start would go on."""
    for partition in range(start.plan.state_partitions):
        parent = f"{STATE_FOLDER}/{partition}"
        for name in folder.names(parent):
            if is_snapshot(name) and (version_of(name) or 0) > start.newest_batch + 1:
                yield f"{parent}/{name}"
