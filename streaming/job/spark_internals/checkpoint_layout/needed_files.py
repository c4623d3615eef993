"""All files of a checkpoint that a complete batch needs, for a copy of it.

A query that starts after batch N reads the file N of ``offsets`` and of ``commits``, the one before it in ``offsets``,
and version N + 1 of the state (:mod:`.state_files`). RocksDB's files name others: a snapshot those of ``SSTs`` and
``logs``; a changelog begins with its lineage, the version and the id of each changelog since a snapshot. Spark writes
each file under a temporary name, renames it, never changes it, and deletes old ones in the background.
"""

import struct
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa

from streaming.contract.errors import CannotRun
from streaming.job.spark_internals.checkpoint_layout.state_files import files_of_version, state_ids
from streaming.job.spark_internals.offset_log import BatchPlan, UnreadablePlan, read_batch_plan
from streaming.job.spark_internals.registry import CHECKPOINT_LAYOUT, reason_to_leave_out
from streaming.job.state_stores import store_of

WHOLE_FOLDERS = ("sources",)
"""Folders of which every file is needed."""

MAX_LINEAGE_BYTES = 2**16
"""The most bytes of a string in Java's modified UTF-8, whose length has 16 bits."""

_LZ4_MAGIC = b"LZ4Block"
_LZ4_HEADER = struct.Struct("<8sBiii")
_LZ4_RAW = 0x10


class UnreadableCheckpoint(Exception):
    """A file of the checkpoint has contents that Spark 4.2 does not write."""


@dataclass
class NeededFiles:
    """The files of a batch, by their paths relative to the checkpoint, with ``/`` between the parts."""

    batch: int
    plan: BatchPlan
    present: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


class _Vanished(Exception):
    """A file was deleted while it was read."""


class _RocksdbSnapshot(msgspec.Struct, rename="camel"):
    """The file ``metadata`` in a snapshot of RocksDB, after its first line, as far as it names other files."""

    sst_files: list[dict[str, object]] = []
    log_files: list[dict[str, object]] | None = None


class _LineageItem(msgspec.Struct, rename="camel"):
    version: int
    checkpoint_unique_id: str


def newest_complete_batch(checkpoint: Path) -> int | None:
    """The newest batch that Spark has completed; None without one."""
    return max((int(path.name) for path in checkpoint.glob("commits/*") if path.name.isdigit()), default=None)


def needed_files(checkpoint: Path, batch: int) -> NeededFiles:
    """Find the files that a query needs to continue after ``batch``, which is complete.

    Raises:
        CannotRun: this version of Spark may have other files.
        UnreadableCheckpoint: a file that names others cannot be read.
    """
    if reason := reason_to_leave_out(CHECKPOINT_LAYOUT):
        raise CannotRun(f"the files that a checkpoint needs are not known: {CHECKPOINT_LAYOUT.name} is {reason}")
    plan = _read_plan(checkpoint, f"offsets/{batch}")
    needed = NeededFiles(batch, plan)
    try:
        _add(needed, checkpoint, [*_log_files(batch), *_metadata_files(checkpoint)])
        operators = [path for path in checkpoint.glob("state/*") if path.name.isdigit()]
        if not operators:
            needed.missing.append("state/0")
        for operator in operators:
            _add_state(needed, checkpoint, operator)
    except _Vanished as vanished:
        needed.missing.append(str(vanished))
    return needed


def _log_files(batch: int) -> Iterator[str]:
    yield "metadata"
    yield f"commits/{batch}"
    yield from (f"offsets/{number}" for number in range(max(0, batch - 1), batch + 1))


def _metadata_files(checkpoint: Path) -> Iterator[str]:
    """What Spark writes once: the sources' first offsets, and the schema of the state."""
    folders = [*(checkpoint / name for name in WHOLE_FOLDERS), *checkpoint.glob("state/[0-9]*/_*")]
    for folder in [*folders, *checkpoint.glob("state/[0-9]*/[0-9]*/_*")]:
        for path in sorted(folder.rglob("[!.]*")):
            if path.is_file():
                yield path.relative_to(checkpoint).as_posix()


def _add(needed: NeededFiles, checkpoint: Path, names: Iterable[str]) -> None:
    for name in names:
        (needed.present if (checkpoint / name).exists() else needed.missing).append(name)


def _add_state(needed: NeededFiles, checkpoint: Path, operator: Path) -> None:
    store = store_of(needed.plan.state_store_class)
    if store is None:
        raise UnreadableCheckpoint(f"offsets/{needed.batch} names a state store that this job does not use")
    ids = _state_ids(checkpoint, needed.batch, int(operator.name)) if store == "rocksdb" else {}
    for partition in range(needed.plan.state_partitions):
        folder = f"state/{operator.name}/{partition}"
        if store == "memory":
            names = _memory_files(checkpoint, folder, needed.batch + 1)
        elif partition in ids:
            names = _rocksdb_files(checkpoint, folder, needed.batch + 1, ids[partition])
        else:
            raise UnreadableCheckpoint(f"commits/{needed.batch} has no id for the state in {folder}")
        _add(needed, checkpoint, names)


def _memory_files(checkpoint: Path, folder: str, version: int) -> Iterator[str]:
    """Back from ``version`` to the newest snapshot; the last name may be missing."""
    found = {path.name for path in (checkpoint / folder).glob("[!.]*")}
    for name in reversed(list(files_of_version("memory", found, version, None))):
        yield f"{folder}/{name}"
        if name not in found:
            return


def _rocksdb_files(checkpoint: Path, folder: str, version: int, state_id: str) -> Iterator[str]:
    """As :func:`_memory_files`, along the lineage of the files of changes."""
    number: int = version
    while number > 0:
        snapshot, changes = f"{folder}/{number}_{state_id}.zip", f"{folder}/{number}_{state_id}.changelog"
        if (checkpoint / snapshot).exists():
            yield snapshot
            yield from _files_of_snapshot(checkpoint, folder, snapshot)
            return
        yield changes
        if not (checkpoint / changes).exists():
            return
        number -= 1
        if number == 0:
            return
        earlier = {item.version: item.checkpoint_unique_id for item in _lineage(checkpoint, changes)}
        if number not in earlier:
            raise UnreadableCheckpoint(f"{changes} does not name the state before it")
        state_id = earlier[number]


def _files_of_snapshot(checkpoint: Path, folder: str, snapshot: str) -> Iterator[str]:
    try:
        with zipfile.ZipFile(checkpoint / snapshot) as archive:
            _version, _, named = archive.read("metadata").decode().partition("\n")
        found = msgspec.json.decode(named, type=_RocksdbSnapshot)
        yield from (f"{folder}/SSTs/{each['dfsSstFileName']}" for each in found.sst_files)
        yield from (f"{folder}/logs/{each['dfsLogFileName']}" for each in found.log_files or ())
    except FileNotFoundError as vanished:
        raise _Vanished(snapshot) from vanished
    except (zipfile.BadZipFile, KeyError, ValueError) as damage:
        raise UnreadableCheckpoint(f"{snapshot} cannot be read: {damage}") from damage


def _lineage(checkpoint: Path, changes: str) -> list[_LineageItem]:
    try:
        with (checkpoint / changes).open("rb") as file:
            start = decompressed(file.read(2 * MAX_LINEAGE_BYTES), 2 * MAX_LINEAGE_BYTES)
        version, rest = _java_string(start)
        if version not in (b"v3", b"v4"):
            raise ValueError(f"its format is {version.decode(errors='replace')!r}, not v3 or v4")
        return msgspec.json.decode(_java_string(rest)[0], type=list[_LineageItem])
    except FileNotFoundError as vanished:
        raise _Vanished(changes) from vanished
    except (ValueError, struct.error, OSError) as damage:
        raise UnreadableCheckpoint(f"{changes} cannot be read: {damage}") from damage


def _java_string(data: bytes) -> tuple[bytes, bytes]:
    """A string as Java's ``writeUTF`` writes it, and the bytes after it."""
    (size,) = struct.unpack_from(">H", data)
    if len(data) < 2 + size:
        raise ValueError("it is cut")
    return data[2 : 2 + size], data[2 + size :]


def decompressed(compressed: bytes, limit: int) -> bytes:
    """What lz4-java's ``LZ4BlockOutputStream`` has compressed: whole blocks, until there are ``limit`` bytes.

    Raises:
        ValueError: it has another format.
    """
    blocks = bytearray()
    place = 0
    while len(blocks) < limit and place + _LZ4_HEADER.size <= len(compressed):
        magic, token, size, full_size, _checksum = _LZ4_HEADER.unpack_from(compressed, place)
        place += _LZ4_HEADER.size
        if magic != _LZ4_MAGIC:
            raise ValueError("it is not compressed with LZ4")
        block = compressed[place : place + size]
        place += size
        if full_size == 0 or len(block) < size:
            break
        is_raw = token & 0xF0 == _LZ4_RAW
        blocks += block if is_raw else pa.decompress(block, full_size, codec="lz4_raw", asbytes=True)
    return bytes(blocks)


def _state_ids(checkpoint: Path, batch: int, operator: int) -> dict[int, str]:
    name = f"commits/{batch}"
    try:
        return state_ids((checkpoint / name).read_text(), operator)
    except FileNotFoundError as vanished:
        raise _Vanished(name) from vanished
    except ValueError as damage:
        raise UnreadableCheckpoint(f"{name} cannot be read: {damage}") from damage


def _read_plan(checkpoint: Path, name: str) -> BatchPlan:
    try:
        return read_batch_plan((checkpoint / name).read_text())
    except (UnreadablePlan, OSError, UnicodeDecodeError) as damage:
        raise UnreadableCheckpoint(f"{name} cannot be read: {damage}") from damage
