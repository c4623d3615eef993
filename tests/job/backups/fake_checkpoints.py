"""Folders with the files of a checkpoint, made without Spark: its names, and contents as far as they are read."""

import json
import struct
import zipfile
from pathlib import Path

from streaming.job.state_stores import PROVIDER, STATE_STORES, StateStore


def plan(store: StateStore = "memory", partitions: int = 1) -> str:
    """A file of the offset log."""
    conf = {"spark.sql.shuffle.partitions": str(partitions), PROVIDER: STATE_STORES[store][PROVIDER]}
    return f'v1\n{json.dumps({"batchTimestampMs": 5, "conf": conf})}\n{{"group-requests":{{"0":5}}}}'


LZ4_END = "LZ4Block" + 13 * "\0"
"""What a file of the state ends with, if it is whole."""


def changes(text: str) -> str:
    """A file of changes. Only its end is read."""
    return text + LZ4_END


def write(folder: Path, **contents: str) -> None:
    """Write files; ``__`` in a name is a ``/``."""
    for name, text in contents.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def add_batch(folder: Path, batch: int, store: StateStore = "memory", partitions: int = 1) -> None:
    """Add a complete batch; of the memory store, with its changes."""
    write(folder, **{f"offsets__{batch}": plan(store, partitions), f"commits__{batch}": "v1\n{}"})
    if store == "memory":
        write(
            folder,
            **{f"state__0__{each}__{batch + 1}.delta": changes(f"changes {batch}") for each in range(partitions)},
        )


def memory_checkpoint(folder: Path, batches: int = 3, partitions: int = 1) -> Path:
    """A checkpoint of the memory store after so many batches, without a snapshot, with which a query could start."""
    write(
        folder,
        metadata='{"id":"7ad7ddc1-ff1d-47c9-8a63-6e0dd0c9a3a2"}',
        sources__0__0="offsets",
        state__0___metadata__metadata="operator",
        state__0__0___metadata__schema="{}",
        starts__1000="",
        **{"requests-topic__the-id": "", ".metadata.crc": "", "lock": ""},
    )
    for batch in range(batches):
        add_batch(folder, batch, partitions=partitions)
    return folder


def write_changelog(path: Path, lineage: list[tuple[int, str]]) -> None:
    """A changelog of RocksDB, as far as its lineage; lz4-java would compress it, and may leave blocks as they are."""
    items = json.dumps([{"version": version, "checkpointUniqueId": state_id} for version, state_id in lineage])
    start = b"".join(struct.pack(">H", len(text)) + text for text in (b"v4", items.encode()))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<8sBiii", b"LZ4Block", 0x15, len(start), len(start), 0) + start)


def write_snapshot(path: Path, *sst_files: str) -> None:
    """A snapshot of RocksDB that names files."""
    named = {"sstFiles": [{"localFileName": "1.sst", "dfsSstFileName": name} for name in sst_files], "numKeys": 1}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata", f"v1\n{json.dumps(named)}")
