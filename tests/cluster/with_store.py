"""A standalone cluster, and a bucket for the checkpoints of its jobs."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.cluster.standalone import StandaloneCluster
from tests.object_store.server import S3Server
from tests.support.coordinator_process import SHORT_LIVED_JVM

BUCKET = "checkpoints"

JOB = {
    # Two jobs of two executors, an active one and its standby, fit into two workers.
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.defaultJavaOptions": SHORT_LIVED_JVM["spark.driver.defaultJavaOptions"],
}


class ClusterWithStore(ExitStack):
    """Two workers and an S3 server; ends with the block."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.spark = StandaloneCluster(folder / "spark", 2)
        self._store = S3Server(folder / "store")
        self._bucket = self._store.bucket(BUCKET)

    def __enter__(self) -> Self:
        super().__enter__()
        self.enter_context(self._store)
        self._store.start()
        self.enter_context(self.spark)
        return self

    def options(self, checkpoint: str) -> Mapping[str, object]:
        """The options of a job here, whose checkpoint has this path in the bucket."""
        location = f"s3a://{BUCKET}/{checkpoint}"
        return {"master": self.spark.master_url, "checkpoint": location, **JOB, **self._store.options}

    def folder_of(self, checkpoint: str) -> Path:
        """The folder in which the server keeps this path of the bucket."""
        return self._bucket / checkpoint
