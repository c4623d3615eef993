"""The Spark session, with every setting that differs from Spark's default and the reason for it.

Figures are p50 from request to response, before and after; with Spark's defaults it is 1.5 s.
"""

import logging
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from streaming.contract.errors import CannotRun
from streaming.contract.topics import BATCH_OVERHEAD_BYTES, MAX_ROW_BYTES
from streaming.embedded.class_archive import options_to_use
from streaming.embedded.environment import in_environment
from streaming.embedded.jars import Jars
from streaming.embedded.temporary_folder import TemporaryFolder, temporary_folder
from streaming.job.checkpoints.file_systems import S3A, scheme_of
from streaming.job.checkpoints.local_folder import local_path
from streaming.job.checkpoints.store_failures import described_failure
from streaming.job.options import JobOptions
from streaming.job.profiles import PROFILES
from streaming.job.spark_internals.class_archive import class_archive
from streaming.job.spark_internals.group_map.compilation import EXTENSION, group_map_jars
from streaming.job.spark_internals.internal_settings import (
    local_checkpoint_settings,
    planning_settings,
    python_worker_settings,
    s3a_checkpoint_settings,
)
from streaming.job.spark_internals.java_objects import JVM_IS_GONE, JavaFailure
from streaming.job.spark_internals.own_jvm import JVM_END_LIMIT_SECONDS, context_on_own_jvm
from streaming.job.spark_internals.registry import OWN_JVM, is_used

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"

STREAMING = {
    # With timeouts, Spark would run a batch at every trigger. Wake events see to it that groups are called in time.
    NO_DATA_BATCHES: "false",
    # Every ten seconds without a batch Spark would add a report that nobody reads.
    "spark.sql.streaming.noDataProgressEventInterval": str(365 * 24 * 3_600_000),
    # Spark disables it for a stateful query anyway, with two warnings at every start.
    "spark.sql.adaptive.enabled": "false",
    # It writes a second file for each file of the checkpoint. Disks and object stores have their own checksums.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Spark plans every batch again, and every task makes its projections again. For a few thousand rows, interpreting
    # costs less than generating and loading Java code. (10,000 requests/s: 612 ms -> 527 ms)
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A batch has a few hundred kilobytes, exchanged by processes of one machine.
    "spark.shuffle.compress": "false",
    "spark.broadcast.compress": "false",
    # Timestamps are milliseconds since the epoch, independent of the machine's time zone.
    "spark.sql.session.timeZone": "UTC",
    # Tracking tasks for a web page costs memory and time in every batch.
    "spark.ui.enabled": "false",
    # Spark keeps a thousand jobs, stages and executions for that page all the same, and sorts them after every batch.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "10",
    "spark.sql.ui.retainedExecutions": "10",
    # Each batch is described for the page as well; this is the shortest form.
    "spark.sql.ui.explainMode": "simple",
    # The metrics read the progress of the last batches: these are a minute's, at 50 ms each.
    "spark.sql.streaming.numRecentProgressUpdates": "1200",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
}

PYTHON_WORKERS = {
    # Loopback TCP waits for delayed acknowledgements: 40 ms an exchange, several in a task. (0.23 s -> 0.145 s)
    "spark.python.unix.domain.socket.enabled": "true",
}

LOCAL_EXECUTOR = {
    # The only executor is in the driver's process. When both have been suspended for two minutes, Spark may give it up
    # as silent; every later heartbeat of it fails, and after 60 of them the process exits (with code 56).
    "spark.storage.blockManagerHeartbeatTimeoutMs": "365d",
}

LOCAL_CHECKPOINT = {
    # Hadoop's own local file system starts chmod for each file. (0.29 s -> 0.23 s)
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
}

S3A_CHECKPOINT = {
    # S3A does not look before it writes, and makes no markers of folders. (With our manager: 70 -> 7 requests a batch)
    "spark.hadoop.fs.s3a.performance.flags": "create,mkdir",
}

DEFAULT_JVM_FLAGS = (
    # The heap is small, and the batch needs the cores: other collectors use several threads.
    "-XX:+UseSerialGC",
    # Planning a batch is a lot of code that runs a few times in each batch. With the default thresholds, five times
    # these, Java's optimizing compiler compiles it only after minutes.
    "-XX:Tier4InvocationThreshold=1000",
    "-XX:Tier4MinInvocationThreshold=200",
    "-XX:Tier4CompileThreshold=3000",
    # Spark's classes outgrow the default of 20 MB five times; each time, Java collects the whole heap.
    "-XX:MetaspaceSize=256m",
    # A state lives for a few batches. With the default of 8, the survivor spaces are too small for them, and they go to
    # the old generation: at 10,000 requests/s, Java collects the whole heap every 25 s, for 250 ms and more. (With the
    # size below, such collections in 75 s: 3 -> 0)
    "-XX:SurvivorRatio=4",
)
"""Flags that the user's ``spark.driver.defaultJavaOptions`` replace: Java does not start with two collectors."""

YOUNG_GENERATION = "-XX:NewSize=192m"
"""The young generation's least size, for the same reason; Java makes it a third of the heap, which begins small."""

LEAST_HEAP_FOR_IT_MIB = 512

OUT_OF_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""A driver without memory hangs. One that exits can be restarted."""

SMALL_NETWORK_BUFFERS = "-Djdk.nio.maxCachedBufferSize=262144"
"""Java's network code keeps a buffer outside the heap for each of a producer's partitions, as large as the largest
batch of records so far: 60 MiB after a quarter of an hour with a few large groups, and growing."""

JVM_FLAGS = (OUT_OF_MEMORY, f"-Dlog4j2.configurationFile={LOG_CONFIGURATION}", SMALL_NETWORK_BUFFERS)

READ_COMMITTED = {"kafka.isolation.level": "read_committed"}
"""For each of Spark's readers of the coordinator's topics. Kafka's Java client, and so Spark, reads aborted records by
default; librdkafka does not."""

PYTHON, PYTHON_VARIABLE = "spark.pyspark.python", "PYSPARK_PYTHON"
"""The setting and the environment variable that choose the executors' Python."""

ADDRESS_VARIABLE = "SPARK_LOCAL_IP"

WAREHOUSE = "spark.sql.warehouse.dir"

JAVA_TEMPORARY_FOLDER = "java.io.tmpdir"

LONGEST_SOCKET_FOLDER = 60
"""The most characters of a folder for the sockets of Python workers: the path of a socket has at most 107 bytes."""

SOURCE = {
    # Clients may send requests before the coordinator's first start; these are answered as well.
    "startingOffsets": "earliest",
    # Requests that retention has deleted were never answered, so their senders have retried or given up. A query that
    # fails because of them would stop all groups.
    "failOnDataLoss": "false",
    # A request in a transaction counts with its commit, as for every other reader of the topics.
    **READ_COMMITTED,
    # A prefetch that waits at the broker delays the next seek, by default up to 500 ms.
    "kafka.fetch.max.wait.ms": "10",
    # Spark requests the log's first and last offset with every poll. By default, a poll returns at most 500 records or
    # 1 MiB.
    "kafka.max.poll.records": "100000",
    "kafka.max.partition.fetch.bytes": str(16 * 1024 * 1024),
}

SINK = {
    # A response that only one broker has may be lost with it, and with it an acknowledged commit.
    "kafka.acks": "all",
    # No further records arrive to fill a batch of the producer's.
    "kafka.linger.ms": "0",
    # A batch writes all its responses at once and waits for the broker: dozens of requests at the default of 16 KiB.
    "kafka.batch.size": str(512 * 1024),
    "kafka.max.request.size": str(MAX_ROW_BYTES + BATCH_OVERHEAD_BYTES),
}


def spark_settings(options: JobOptions, jars: Jars) -> dict[str, str]:
    """All Spark settings of the job. The user's own ``spark.<key>`` options win."""
    settings = {
        **STREAMING,
        **planning_settings(),
        **PROFILES[options.profile].spark,
        **PYTHON_WORKERS,
        **python_worker_settings(options.python_worker),
        "spark.app.name": "group-coordinator",
        "spark.master": options.master,
        "spark.driver.memory": options.driver_memory,
        "spark.driver.defaultJavaOptions": " ".join(_driver_flags(options.driver_memory)),
        "spark.driver.extraJavaOptions": " ".join(JVM_FLAGS),
    }
    if options.is_local:
        settings |= LOCAL_EXECUTOR
        # Executors within the driver need no copies of the jars.
        class_path = settings["spark.driver.extraClassPath"] = extra_class_path(jars)
        if group_map_jars():
            settings["spark.sql.extensions"] = EXTENSION
        if archive := class_archive(class_path):
            settings["spark.driver.extraJavaOptions"] = " ".join([*JVM_FLAGS, *options_to_use(archive)])
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        if local_path(options.checkpoint) is not None:
            settings |= LOCAL_CHECKPOINT | local_checkpoint_settings()
    else:
        settings["spark.jars"] = ",".join(map(str, jars.connector))
    if scheme_of(options.checkpoint) == S3A:
        settings |= S3A_CHECKPOINT | s3a_checkpoint_settings()
    return settings | {f"spark.{key}": value for key, value in options.spark.items()}


def _driver_flags(heap: str) -> tuple[str, ...]:
    """The default flags of a driver with this heap, such as 512m or 2g: in a small one, the groups need the room."""
    mib = int(heap[:-1]) * (1024 if heap[-1] in "gG" else 1)
    return (*DEFAULT_JVM_FLAGS, YOUNG_GENERATION) if mib >= LEAST_HEAP_FOR_IT_MIB else DEFAULT_JVM_FLAGS


def extra_class_path(jars: Jars) -> str:
    """The class path of a local driver, ahead of pyspark's own jars."""
    return os.pathsep.join(map(str, [*group_map_jars(), *jars.connector]))


@contextmanager
def spark_session(
    settings: Mapping[str, str],
    *,
    temporary: TemporaryFolder | None = None,
    inherited: tuple[int, ...] = (),
    jvm_end_limit_seconds: float = JVM_END_LIMIT_SECONDS,
) -> Iterator[SparkSession]:
    """A session with these settings, which ends with the block.

    What Spark writes for the time of the session is in ``temporary``, by default a folder of its own, unless the
    settings name other places. ``inherited`` are file descriptors for the JVM; it may take ``jvm_end_limit_seconds`` to
    end before it is killed. Both apply to a JVM of the job's own only (see
    :mod:`streaming.job.spark_internals.own_jvm`).

    Raises:
        CannotRun: the JVM has ended within the block.
    """
    # Both also raise what they log.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    with in_environment(_variables(settings)), ExitStack() as stack:
        folder = temporary or stack.enter_context(temporary_folder())
        conf = SparkConf(loadDefaults=False).setAll(list(with_temporary_folder(settings, folder.path).items()))
        if is_used(OWN_JVM):
            # With the lock of the folder, nobody takes the JVM's files for leftovers if only this process is killed.
            inherited = (*inherited, folder.descriptor)
            context = stack.enter_context(
                context_on_own_jvm(
                    conf,
                    folder.path,
                    inherited=inherited,
                    end_limit_seconds=jvm_end_limit_seconds,
                    in_words=_failures_in_words,
                )
            )
            yield SparkSession(context)
            return
        with _failures_in_words():
            context = SparkContext(conf=conf)
        try:
            with _failures_in_words():
                yield SparkSession(context)
        finally:
            with suppress(*JVM_IS_GONE):
                context.stop()


def _variables(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that pyspark and Spark read. A later session in this process may need others."""
    # On one host, the workers run in the environment of this process; that includes Spark's `local-cluster`. pyspark
    # reads the variable alone, not the setting.
    if settings["spark.master"].startswith("local"):
        return {
            PYTHON_VARIABLE: sys.executable,
            # Else Spark looks up this host's name, which fails in a container whose network does not know it.
            ADDRESS_VARIABLE: os.environ.get(ADDRESS_VARIABLE, "127.0.0.1"),
        }
    return {PYTHON_VARIABLE: settings[PYTHON]} if PYTHON in settings else {}


@contextmanager
def _failures_in_words() -> Iterator[None]:
    """Raise CannotRun for a failure of Java's: its text is in the JVM, and lost when that has ended."""
    try:
        yield
    except JavaFailure as failure:
        raise CannotRun(f"Spark: {described_failure(failure)}") from failure
    except CapturedException as failure:
        # What JavaFailure becomes once pyspark has had a session in this process.
        raise CannotRun(f"Spark: {str(failure).partition(chr(10))[0]}") from failure


def with_temporary_folder(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The settings, with this folder for the JVM's temporary files, unless they name another.

    Spark's go there too: ``spark.local.dir`` has it as its default, and warns if it is set. Executors on other hosts
    have folders of their cluster manager's.
    """
    # Spark would make one in the current folder, without a table.
    changed = {WAREHOUSE: str(folder / "spark-warehouse"), **settings}
    java_options = changed.get("spark.driver.extraJavaOptions", "")
    if JAVA_TEMPORARY_FOLDER not in java_options:
        changed["spark.driver.extraJavaOptions"] = (
            f"{java_options} -D{JAVA_TEMPORARY_FOLDER}={shlex.quote(str(folder))}"
        )
        if len(str(folder)) > LONGEST_SOCKET_FOLDER:
            changed.setdefault("spark.python.unix.domain.socket.dir", "/tmp")  # noqa: S108
    return changed
