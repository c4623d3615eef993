"""A folder in any of Hadoop's file systems: which files it has, and copies from there and to there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from streaming.contract.errors import CannotRun
from streaming.job.checkpoints.store_failures import described_failure, names_of_causes
from streaming.job.spark_internals.java_objects import JavaFailure, hadoop_configuration, java_virtual_machine


class Vanished(Exception):
    """A file was deleted since the folder was listed."""


class StoredFile(NamedTuple):
    """The size of a file in bytes, and when it was written, ms since the epoch."""

    size: int
    written_at: int


class StoreFolder:
    """The folder at ``location``, a URI. Each method raises CannotRun where the store refuses or does not answer."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self.location = location.rstrip("/")
        self._new_path: Any = java_virtual_machine(spark).org.apache.hadoop.fs.Path
        self._root = self._new_path(self.location)
        with self._accessing():
            self._files = self._root.getFileSystem(hadoop_configuration(spark))

    def within(self, name: str) -> "StoreFolder":
        """A folder in this one."""
        return StoreFolder(self._spark, f"{self.location}/{name}")

    def beside(self, ending: str) -> "StoreFolder":
        """The folder beside this one whose name has this ending, too."""
        return StoreFolder(self._spark, self.location + ending)

    def files(self) -> dict[str, StoredFile]:
        """All files in any depth, without hidden ones, by their paths relative to the folder; empty without a folder.

        A path has ``/`` between its parts.
        """
        begin = f"{self._files.makeQualified(self._root).toString()}/"
        found = {}
        with self._accessing():
            try:
                listed = self._files.listFiles(self._root, True)
                while listed.hasNext():
                    each = listed.next()
                    path = str(each.getPath().toString()).removeprefix(begin)
                    if not path.rpartition("/")[2].startswith("."):
                        found[path] = StoredFile(int(each.getLen()), int(each.getModificationTime()))
            except JavaFailure as failure:
                if not _is_missing(failure):
                    raise
        return found

    def download(self, path: str, target: Path) -> None:
        """Copy a file to a place on this machine. Raises Vanished if it does not exist."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._accessing():
            try:
                # Without the checksum files of Hadoop's local file system.
                self._files.copyToLocalFile(False, self._path(path), self._new_path(target.as_uri()), True)
            except JavaFailure as failure:
                if _is_missing(failure):
                    raise Vanished(f"{self.location}/{path}") from failure
                raise

    def upload(self, source: Path, path: str) -> None:
        """Copy a file of this machine there, in place of a former one."""
        with self._accessing():
            self._files.copyFromLocalFile(False, True, self._new_path(source.as_uri()), self._path(path))

    def delete(self, path: str = "") -> None:
        """Delete a file, or a folder with all that is in it; by default, this one."""
        with self._accessing():
            self._files.delete(self._path(path) if path else self._root, True)

    def copy_to(self, other: "StoreFolder", path: str) -> None:
        """Copy a file to another folder of the same store."""
        file_util = java_virtual_machine(self._spark).org.apache.hadoop.fs.FileUtil
        configuration = hadoop_configuration(self._spark)
        with self._accessing():
            file_util.copy(self._files, self._path(path), self._files, other._path(path), False, configuration)

    def _path(self, path: str) -> Any:
        return self._new_path(self._root, path)

    @contextmanager
    def _accessing(self) -> Iterator[None]:
        try:
            yield
        except JavaFailure as failure:
            raise CannotRun(f"{self.location}: {described_failure(failure)}") from failure


def _is_missing(failure: JavaFailure) -> bool:
    return "FileNotFoundException" in names_of_causes(failure)
