"""Where Spark keeps the groups between two batches; fixed when a checkpoint is made.

Spark looks at the timeout of every group in every batch, so what an idle batch costs is what it takes to walk over
all groups: with 100,000 of them 0.17 s in the JVM's heap, 0.26 s in RocksDB. PERFORMANCE.md has more.
"""

from collections.abc import Mapping
from typing import Literal

StateStore = Literal["memory", "rocksdb"]

DEFAULT_STATE_STORE: StateStore = "memory"

PROVIDER = "spark.sql.streaming.stateStore.providerClass"

STATE_STORES: Mapping[StateStore, Mapping[str, str]] = {
    # Quicker in every respect while the groups fit into the heap: about a kilobyte for a group of two members, and
    # as much again for a moment. A batch writes what changed, and about once a minute all groups are written.
    "memory": {
        PROVIDER: "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
        # It knows no other.
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
    },
    # For groups by the million: they live outside the heap, and the rest of them on disk.
    "rocksdb": {
        PROVIDER: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        # A commit uploads what changed instead of a snapshot.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Version 2 names state files by the attempt that wrote them, which ends a family of faults where a retried
        # task met the files of the attempt before.
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    },
}
"""The settings of each."""


def store_of(provider: str) -> StateStore | None:
    """Which of them a provider's class is; None for one that this job never uses."""
    return next((name for name, settings in STATE_STORES.items() if settings[PROVIDER] == provider), None)
