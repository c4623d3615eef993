"""The checkpoint folder: the job's own files in it, and how the newest batch was planned.

Files are read and written through Hadoop's file systems, as Spark does, so every location that Spark supports works. Of
a local folder, Python itself reads names and sizes: nobody is active while a start makes calls into the JVM for them.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import SparkSession

from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.job.checkpoints.local_folder import LocalFolder, local_path
from streaming.job.checkpoints.store_check import require_reachable
from streaming.job.checkpoints.store_failures import described_failure, store_failure
from streaming.job.group_batch.starts import Start
from streaming.job.options import JobOptions
from streaming.job.spark_internals.checkpoint_layout.start_check import UnreadableFile
from streaming.job.spark_internals.java_objects import JavaFailure, hadoop_configuration, java_virtual_machine
from streaming.job.spark_internals.offset_log import BatchPlan, UnreadablePlan, read_batch_plan
from streaming.job.spark_internals.registry import OFFSET_LOG, is_used
from streaming.job.state_stores import StateStore, store_of
from streaming.job.topics.layout import Partitions

STARTS_KEPT = 100
"""A batch that runs again needs the start that has planned it, however many starts have failed since."""

STARTS_FOLDER = "starts"
"""The folder of the checkpoint with a file for each start, whose name is the time in ms since the epoch.

Earlier releases wrote empty files.
"""

PATTERN_CHARACTER = re.compile(r"[\\*?{}\[\]]")
"""A character with a meaning in a pattern of Hadoop's file systems."""

TOPIC_FOLDER = "requests-topic"
"""The folder of the checkpoint with an empty file whose name is the id of the requests topic."""


class Planned(NamedTuple):
    """The newest batch that was planned.

    read_until: the offset after its last record, by partition. time: ms since the epoch, 0 without a batch.
    """

    read_until: dict[int, int]
    time: int
    is_complete: bool


NOTHING_PLANNED = Planned({}, 0, True)


class CheckpointLayout(NamedTuple):
    """What is fixed when a checkpoint is made."""

    state_partitions: int
    request_partitions: dict[str, int]
    """The number of partitions of the requests topic, by the topic's name, as of the newest batch."""

    state_store: StateStore | None
    """None for a provider that this job does not use."""


class Checkpoint:
    """The folder at ``location``, a path or a URI. Raises CannotRun: its store is not there, or refuses."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self._jvm: Any = java_virtual_machine(spark)
        # The name of a class as attributes is a call into the JVM for each of its parts.
        self._new_path = self._jvm.org.apache.hadoop.fs.Path
        self._io = self._jvm.org.apache.commons.io.IOUtils
        self._location = location
        self._root = self._new_path(location)
        with self._accessing():
            self._files = self._root.getFileSystem(hadoop_configuration(spark))
        local = local_path(location)
        if local is None:
            require_reachable(spark, location)
        self._local = None if local is None else LocalFolder(local)
        self._starts: dict[int, Start] = {}
        self._sizes: dict[str, int] = {}
        self._seen_names: dict[str, list[str]] | None = None
        self._seen_texts: dict[str, str] = {}

    @contextmanager
    def seen_once(self) -> Iterator[None]:
        """Within the block, list each folder of a store once, and read each file once.

        A take-over asks for the newest batch a dozen times, and nobody is active meanwhile. What another job writes
        within the block is not seen.
        """
        self._seen_names = {}
        try:
            yield
        finally:
            self._seen_names = None
            self._seen_texts.clear()

    def starts(self) -> list[Start]:
        """The job's last starts, in order of time. A start that was read once is not read again."""
        times = sorted(int(name) for name in self.names(STARTS_FOLDER) if name.isdigit())
        return [self._start(time) for time in times]

    def _start(self, time: int) -> Start:
        if time not in self._starts:
            try:
                self._starts[time] = msgspec.json.decode(self.text(f"{STARTS_FOLDER}/{time}"), type=Start)
            except (msgspec.DecodeError, UnreadableFile):
                # An earlier release has written it, or a power failure has emptied it: the time is known at least.
                return Start(started_at=time)
        return self._starts[time]

    def record_start(self, start: Start) -> None:
        """Record a start of the job, and forget those before the last :data:`STARTS_KEPT`.

        Raises:
            CannotRun: it cannot be written.
        """
        with self._accessing():
            self._record_start(start)

    def _record_start(self, start: Start) -> None:
        folder, name = self._path(STARTS_FOLDER), str(start.started_at)
        self._files.mkdirs(folder)
        # A file that is half written has another name.
        unfinished = self._path(STARTS_FOLDER, f".{name}.unfinished")
        stream = self._files.create(unfinished, True)
        stream.write(msgspec.json.encode(start))
        stream.close()
        self._files.rename(unfinished, self._path(STARTS_FOLDER, name))
        if self._seen_names is not None and STARTS_FOLDER in self._seen_names:
            self._seen_names[STARTS_FOLDER].append(name)
        times = sorted(int(name) for name in self.names(STARTS_FOLDER) if name.isdigit())
        for old in times[:-STARTS_KEPT]:
            self._files.delete(self._path(STARTS_FOLDER, str(old)), False)

    def planned(self, topic: str) -> Planned:
        """How far the batches of this checkpoint have read a topic, the one included that may not be complete."""
        newest = self._newest_file("offsets")
        plan = self._readable_plan(newest)
        if plan is None:
            return NOTHING_PLANNED
        return Planned(plan.offsets.get(topic, {}), plan.time, newest in self.names("commits"))

    def requests_topic_id(self) -> str | None:
        """The id of the requests topic that this checkpoint has read; None if it was not recorded."""
        return next(iter(self.names(TOPIC_FOLDER)), None)

    def record_requests_topic_id(self, topic_id: str) -> None:
        """Record the id of the requests topic, in place of a former one. Raises CannotRun: it cannot be written."""
        folder = self._path(TOPIC_FOLDER)
        with self._accessing():
            self._files.delete(folder, True)
            self._files.mkdirs(folder)
            self._files.create(self._path(TOPIC_FOLDER, topic_id), True).close()
        if self._seen_names is not None:
            self._seen_names[TOPIC_FOLDER] = [topic_id]

    def offsets_read(self, topic: str) -> dict[int, int]:
        """The offset after the last record of the newest complete batch, by partition; empty without such a batch."""
        plan = self._readable_plan(self._newest_file("commits"))
        return {} if plan is None else plan.offsets.get(topic, {})

    def newest_complete_batch(self) -> int | None:
        """The number of the last batch that has its state; None when there is none."""
        newest = self._newest_file("commits")
        return None if newest is None else int(newest)

    def is_new(self) -> bool:
        """Whether the checkpoint has no batches."""
        return self._newest_file("offsets") is None

    def layout(self) -> CheckpointLayout | None:
        """The layout of the newest batch.

        None for a checkpoint without batches, and for one that a version of Spark has written whose format is not
        known here.

        Raises:
            CannotRun: the newest batch cannot be read.
        """
        newest = self._newest_file("offsets")
        if newest is None:
            return None
        try:
            plan = read_batch_plan(self.text(f"offsets/{newest}"))
        except (UnreadablePlan, UnreadableFile) as error:
            if not is_used(OFFSET_LOG, self._spark):
                return None
            raise CannotRun(
                f"{self._path('offsets', newest)} is not a batch that Spark has planned: {error}"
            ) from error
        return CheckpointLayout(plan.state_partitions, plan.request_partitions, store_of(plan.state_store_class))

    def names(self, folder: str) -> list[str]:
        """The names in a folder of the checkpoint, without hidden ones; empty if it does not exist.

        Raises:
            CannotRun: the store refuses, or does not answer.
        """
        if self._local is not None:
            return self._local.names(folder)
        if self._seen_names is None:
            return self._listed_names(folder)
        if folder not in self._seen_names:
            self._seen_names[folder] = self._listed_names(folder)
        return list(self._seen_names[folder])

    def _listed_names(self, folder: str) -> list[str]:
        # One call for all of them, which gives "{FOLDER/NAME,FOLDER/NAME}": there may be hundreds of files. For a
        # pattern, any store gives an array of FileStatus; `listStatus` of S3A gives one of a class of its own, for
        # which py4j finds no method.
        pattern = PATTERN_CHARACTER.sub(r"\\\g<0>", f"{self._root.toString()}/{folder}") + "/*"
        with self._accessing():
            found = self._files.globStatus(self._new_path(pattern))
        paths = self._jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(found)
        joined = str(self._jvm.org.apache.commons.lang3.ArrayUtils.toString(paths))
        separator = f",{self._files.makeQualified(self._path(folder)).toString()}/"
        return [name for name in f",{joined[1:-1]}".split(separator)[1:] if not name.startswith(".")]

    def size(self, path: str) -> int:
        """The size of a file in bytes, as of when the first size in its folder was asked for; 0 if it is gone since."""
        if self._local is not None:
            return self._local.size(path)
        if path not in self._sizes:
            # One request for all files of a folder: a start asks for each file of the state, while nobody is active.
            self._sizes |= self._listed_sizes(path.rpartition("/")[0])
        return self._sizes.get(path, 0)

    def _listed_sizes(self, folder: str) -> dict[str, int]:
        found = {}
        with self._accessing():
            listed = self._files.listFiles(self._path(folder), False)
            while listed.hasNext():
                each = listed.next()
                found[f"{folder}/{each.getPath().getName()}"] = int(each.getLen())
        return found

    def text(self, path: str) -> str:
        """The content of an existing file. Raises UnreadableFile."""
        if path in self._seen_texts:
            return self._seen_texts[path]
        with self._reading(path) as stream:
            text = str(self._io.toString(stream, "UTF-8"))
        if self._seen_names is not None and self._local is None:
            self._seen_texts[path] = text
        return text

    def read_through(self, path: str, end_bytes: int) -> bytes:
        """Read an existing file of any size; returns its last bytes. Raises UnreadableFile."""
        with self._reading(path) as stream:
            self._io.consume(stream)
            size = int(self._files.getFileStatus(self._path(path)).getLen())
            stream.seek(max(0, size - end_bytes))
            return bytes(self._io.toByteArray(stream))

    def _readable_plan(self, batch: str | None) -> BatchPlan | None:
        """The plan of a batch; None without a batch, and for a plan whose damage the start of the query reports."""
        try:
            return None if batch is None else read_batch_plan(self.text(f"offsets/{batch}"))
        except (UnreadablePlan, UnreadableFile):
            return None

    def _newest_file(self, log: str) -> str | None:
        """The name of the newest batch's file in one of Spark's logs; None when there is none."""
        batches = [name for name in self.names(log) if name.isdigit()]
        return max(batches, key=int) if batches else None

    def _path(self, folder: str, name: str | None = None) -> Any:
        return self._new_path(self._root, folder if name is None else f"{folder}/{name}")

    @contextmanager
    def _reading(self, path: str) -> Iterator[Any]:
        try:
            stream = self._files.open(self._path(path))
            try:
                yield stream
            finally:
                stream.close()
        except JavaFailure as error:
            raise UnreadableFile(described_failure(error)) from error

    @contextmanager
    def _accessing(self) -> Iterator[None]:
        try:
            yield
        except JavaFailure as failure:
            raise store_failure(self._location, failure) from failure


def check_layout(layout: CheckpointLayout, options: JobOptions, partitions: Partitions) -> tuple[int, StateStore]:
    """Check that a checkpoint fits the options and the topics; returns its state partitions and its state store.

    Raises:
        CannotRun: it does not fit; the message says what to change.
    """
    for name, requested, found in (
        ("state-partitions", options.state_partitions, layout.state_partitions),
        ("state-store", options.state_store, layout.state_store),
    ):
        if requested not in (None, found):
            raise CannotRun(
                f"checkpoint {options.checkpoint} was made with {name} {found}, "
                f"the options say {requested}: it is fixed when a checkpoint is made"
            )
    if layout.state_store is None:
        raise CannotRun(f"checkpoint {options.checkpoint} was made with a state store that this job does not use")
    known = layout.request_partitions.get(options.topics.requests)
    if known is None:
        raise CannotRun(
            f"checkpoint {options.checkpoint} belongs to {', '.join(layout.request_partitions)}, "
            f"not to {options.topics.requests}: set its topic-prefix, or choose another checkpoint"
        )
    if known > partitions.requests:
        raise CannotRun(
            f"checkpoint {options.checkpoint} has offsets of {counted(known, 'partition')} of "
            f"{options.topics.requests}, which has {partitions.requests}: the topic was deleted and created "
            "again; choose a new checkpoint (with "
            "--new-checkpoint), or restore the topic"
        )
    return layout.state_partitions, layout.state_store


def check_topic_id(kept: str | None, found: str | None, options: JobOptions) -> None:
    """Check that the requests topic is the one that the checkpoint has read; None is an id that is not known.

    Raises:
        CannotRun: the topic was created again since; the message says how to go on.
    """
    if kept is not None and found is not None and kept != found:
        raise CannotRun(
            f"topic {options.topics.requests} was deleted and created again: checkpoint {options.checkpoint} has read "
            f"the topic with the id {kept}, this one has the id {found} and other requests at the same offsets: "
            "restore the former topic, or choose a new checkpoint (with --new-checkpoint), or, to keep the groups and "
            f"skip requests that wait in this topic, remove the checkpoint's folder {TOPIC_FOLDER}"
        )
