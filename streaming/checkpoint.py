"""What the job keeps beside Spark's own files in the checkpoint folder, and what it reads of those.

Everything goes through Hadoop's file systems, as Spark's own checkpoint does, so it works wherever that does.
"""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from pyspark.sql import SparkSession

from streaming.errors import CannotRun
from streaming.state_stores import PROVIDER, StateStore, store_of

STARTS_KEPT = 100
"""Each batch asks for the last start before it, and the batches kept for time travel are few."""

LOCK_LIMIT_SECONDS = 30.0


class MadeWith(NamedTuple):
    """What a checkpoint was made with and cannot be changed in it."""

    state_partitions: int
    request_partitions: dict[str, int]
    """By topic, as of the newest batch."""

    state_store: StateStore | None
    """None for a provider that this job never uses."""


class Checkpoint:
    """The folder at ``location``, a path or a URI."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        assert spark._jvm is not None
        self._jvm: Any = spark._jvm
        self._root = self._jvm.org.apache.hadoop.fs.Path(location)
        self._files = self._root.getFileSystem(spark._jsc.hadoopConfiguration())

    def record_start(self, now: int) -> tuple[int, ...]:
        """Keep ``now`` (ms since the epoch) as a start of the job; returns the last starts, ascending.

        A start is a file of no bytes whose name is its time: nothing that could be half written.
        """
        folder = self._jvm.org.apache.hadoop.fs.Path(self._root, "starts")
        self._files.mkdirs(folder)
        self._files.create(self._jvm.org.apache.hadoop.fs.Path(folder, str(now)), True).close()
        starts = sorted(int(name) for name in self._names(folder) if name.isdigit())
        for old in starts[:-STARTS_KEPT]:
            self._files.delete(self._jvm.org.apache.hadoop.fs.Path(folder, str(old)), False)
        return tuple(starts[-STARTS_KEPT:])

    def made_with(self) -> MadeWith | None:
        """What the newest batch of the checkpoint was planned with; None for a checkpoint without batches."""
        folder = self._jvm.org.apache.hadoop.fs.Path(self._root, "offsets")
        if not self._files.exists(folder):
            return None
        batches = [int(name) for name in self._names(folder) if name.isdigit()]
        if not batches:
            return None
        newest = self._jvm.org.apache.hadoop.fs.Path(folder, str(max(batches)))
        try:
            return _made_with(self._text(newest))
        except (ValueError, KeyError, AttributeError) as error:
            raise CannotRun(f"{newest} is not a batch that Spark has planned: {error}") from error

    def _text(self, path: Any) -> str:
        stream = self._files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _names(self, folder: Any) -> list[str]:
        return [status.getPath().getName() for status in self._files.listStatus(folder)]


def _made_with(plan: str) -> MadeWith:
    """From a batch of Spark's offset log: a line with its version, one with settings, one for each source."""
    _version, metadata, offsets = plan.split("\n")[:3]
    settings = msgspec.json.decode(metadata)["conf"]
    partitions = {topic: len(by_partition) for topic, by_partition in msgspec.json.decode(offsets).items()}
    return MadeWith(int(settings["spark.sql.shuffle.partitions"]), partitions, store_of(settings[PROVIDER]))


def local_path(location: str) -> Path | None:
    """The folder that a location names on this machine's file system; None when it is on another one."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        return Path(parts.path if parts.scheme else location).absolute()
    return None


@contextmanager
def held(folder: Path) -> Iterator[int]:
    """Hold a local checkpoint for this job alone; gives the lock's file descriptor.

    The JVM is to inherit the descriptor: the lock then lasts until both this process and the JVM are gone, so
    that a job that is started after a ``kill -9`` does not meet the last batch of the one before. Raises
    :class:`CannotRun` when another job does not let go of it in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        deadline = time.monotonic() + LOCK_LIMIT_SECONDS
        while not _taken(lock.fileno()):
            if time.monotonic() > deadline:
                raise CannotRun(f"checkpoint {folder} is in use by another job")
            time.sleep(0.05)
        yield lock.fileno()


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
