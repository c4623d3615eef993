"""State stores: where Spark keeps the groups between batches. The choice is fixed when a checkpoint is created.

Spark checks the timeout of every group in every batch, so with RocksDB a batch takes at least as long as an iteration
over all groups. In the JVM's heap of a job on one host it does not (:mod:`.spark_internals.group_map`).
docs/performance.md has the figures.
"""

from collections.abc import Mapping
from typing import Literal

StateStore = Literal["memory", "rocksdb"]

DEFAULT_STATE_STORE: StateStore = "memory"

DEFAULT_STATE_PARTITIONS = 1

PROVIDER = "spark.sql.streaming.stateStore.providerClass"

STATE_STORES: Mapping[StateStore, Mapping[str, str]] = {
    # The faster one while the groups fit into the heap: a group of two members takes about a kilobyte, and briefly
    # twice that. A batch writes its changes; about once a minute all groups are written.
    "memory": {
        PROVIDER: "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
        # The only version that this provider supports.
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
    },
    # For millions of groups: they are kept outside of the heap, and on disk.
    "rocksdb": {
        PROVIDER: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        # A commit uploads its changes instead of a snapshot.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Version 2 includes the task attempt in the names of state files, so that a retried task cannot read or
        # overwrite the files of an earlier attempt.
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    },
}
"""The Spark settings of each store."""


def store_of(provider: str) -> StateStore | None:
    """Return the store that a provider class implements; None for a class that the job never uses."""
    return next((name for name, settings in STATE_STORES.items() if settings[PROVIDER] == provider), None)
