"""The files of a state partition: which of them make up a version of the state.

The folder ``state/0/P`` has the files of partition P. A version is written by each batch, and all at once now and then:

| store | changes of a version | the whole state |
|---|---|---|
| `memory` | ``V.delta`` | ``V.snapshot`` |
| `rocksdb` | ``V_ID.changelog`` | ``V_ID.zip``, with files of the folder ``SSTs`` |

A version of the memory store is the newest snapshot up to it, and all deltas after that. RocksDB's ids are in the file
of the batch in ``commits``; they change when a task runs again.
"""

from collections.abc import Collection, Iterator

import msgspec

from streaming.job.state_stores import StateStore

STATE_FOLDER = "state/0"
"""The state of the query's only stateful operator."""

LZ4_END = b"LZ4Block"
LZ4_END_BYTES = 21
"""A complete file of deltas, of a snapshot or of a changelog ends with an empty block of LZ4: this name, a byte for the
kind, and three zeros of four bytes."""


class _CompleteBatch(msgspec.Struct, rename="camel"):
    """A file of ``commits``, which Spark writes when a batch is complete: a line with a version, then this as JSON."""

    state_unique_ids: dict[int, list[list[str]]] | None = None
    """By operator, state partition and store; an operator of ours has one store."""


def state_ids(text: str, operator: int = 0) -> dict[int, str]:
    """RocksDB's ids of the state after a batch, by state partition, from the batch's file in ``commits``.

    Empty with the memory store.

    Raises:
        ValueError: Spark has not written this, or not to its end.
    """
    _version, _, content = text.partition("\n")
    ids = msgspec.json.decode(content, type=_CompleteBatch).state_unique_ids or {}
    return {partition: stores[0] for partition, stores in enumerate(ids.get(operator, ())) if stores}


def version_of(name: str) -> int | None:
    """The version of a file of the state; None for any other name."""
    number = name.partition(".")[0].partition("_")[0]
    return int(number) if number.isdigit() else None


def files_of_version(store: StateStore, names: Collection[str], version: int, state_id: str | None) -> Iterator[str]:
    """The names of the files that make up a version, those included that ``names`` lack.

    ``state_id`` is RocksDB's id of the version. For RocksDB, the file of this version is the only one: it names others.
    """
    if store == "memory":
        snapshots = [version_of(name) or 0 for name in names if is_snapshot(name)]
        base = max((snapshot for snapshot in snapshots if snapshot <= version), default=0)
        if base:
            yield f"{base}.snapshot"
        yield from (f"{number}.delta" for number in range(base + 1, version + 1))
    elif state_id is not None:
        whole = f"{version}_{state_id}.zip"
        yield whole if whole in names else f"{version}_{state_id}.changelog"


def is_snapshot(name: str) -> bool:
    """Whether a file is a snapshot of the memory store.

    Spark replaces a later delta when it comes to that version, but not a later snapshot: a start would go on with it in
    place of what batches have written since. RocksDB's names are never used again.
    """
    return name.endswith(".snapshot")


def is_compressed(path: str) -> bool:
    """Whether a file of the state has the format of :func:`is_complete`."""
    return path.endswith((".delta", ".snapshot", ".changelog"))


def is_complete(end: bytes) -> bool:
    """Whether a compressed file with these last :data:`LZ4_END_BYTES` was written to its end."""
    return len(end) == LZ4_END_BYTES and end.startswith(LZ4_END) and not any(end[len(LZ4_END) + 1 :])
