"""The Spark session: every setting that differs from Spark's default, each with its reason.

The figures behind "quicker" are p50 from request to response; Spark's defaults gave 1.5 s.
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streaming import python_worker
from streaming.checkpoint import local_path
from streaming.class_archive import class_archive
from streaming.errors import CannotRun
from streaming.jars import Jars
from streaming.options import JobOptions
from streaming.profiles import PROFILES
from streaming.topics import BATCH_OVERHEAD_BYTES, MAX_ROW_BYTES

JVM_END_LIMIT_SECONDS = 15.0

JVM_IS_GONE = (Py4JError, ConnectionError)
"""What a call into the JVM raises when that has ended: py4j tries to connect anew, and may not get that far."""

SAID_AT_EVERY_START = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",  # Spark asks for them itself
    b"Warning: Java versions > Java 11 can only operate in restricted mode",  # the sketches of the metrics
)

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

STREAMING = {
    # Deadlines must fire although no request comes.
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    # Spark switches it off for a stateful query anyway, with two warnings at every start.
    "spark.sql.adaptive.enabled": "false",
    # A second file for each file of the checkpoint, written by threads of its own. Disks and object stores have their
    # own checksums.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Every batch is planned anew, and every task makes its projections anew: for the few thousand rows of a batch,
    # Java source written, looked up and loaded costs more than interpreting. (10,000 requests/s: p50 612 -> 527 ms)
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A batch is a few hundred kilobytes on its way between processes of one machine.
    "spark.shuffle.compress": "false",
    "spark.broadcast.compress": "false",
    # Timestamps are milliseconds since the epoch here, wherever the job runs.
    "spark.sql.session.timeZone": "UTC",
    # A batch has a handful of tasks; to report them to nobody costs memory and time.
    "spark.ui.enabled": "false",
    # The metrics are fetched from the progress of these batches: a minute of them, at 50 ms each.
    "spark.sql.streaming.numRecentProgressUpdates": "1200",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
}

PYTHON_WORKERS = {
    # Imports before the fork, and no full garbage collection over them after each task: 0.35 s -> 0.29 s.
    "spark.python.daemon.module": "streaming.worker",
    # Loopback TCP waits for delayed acknowledgements, 40 ms an exchange, several a task: 0.23 s -> 0.145 s.
    "spark.python.unix.domain.socket.enabled": "true",
}

LOCAL_CHECKPOINT = {
    # The default manager starts a process for each link and permission on a local file system. (1.5 s -> 0.35 s)
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Hadoop's own local file system runs chmod for each file: 0.29 s -> 0.23 s.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
}

DEFAULT_JVM_FLAGS = (
    # The heap is small, and the cores are for the batch: other collectors keep threads of their own busy.
    "-XX:+UseSerialGC",
    # Planning a batch is a lot of code that runs a few times a batch: by the default thresholds, five times these, the
    # optimizing compiler comes to it after minutes.
    "-XX:Tier4InvocationThreshold=1000",
    "-XX:Tier4MinInvocationThreshold=200",
    "-XX:Tier4CompileThreshold=3000",
    # Spark's classes outgrow the default of 20 MB five times, and each time the whole heap is collected.
    "-XX:MetaspaceSize=256m",
)
"""Those that the user's ``spark.driver.defaultJavaOptions`` replace: two collectors would not start."""

JVM_FLAGS = (
    # A driver without memory left is neither alive nor dead; one that has ended is started again.
    "-XX:+ExitOnOutOfMemoryError",
    f"-Dlog4j2.configurationFile={LOG_CONFIGURATION}",
)

SOURCE = {
    # A client's first request may come before the coordinator's first start: it waits for an answer too.
    "startingOffsets": "earliest",
    # What retention has deleted was never answered, so its sender has tried again or given up. To end the
    # query over it would stop every group.
    "failOnDataLoss": "false",
    # A prefetch that waits at the broker holds up the next seek, by up to the default of 500 ms.
    "kafka.fetch.max.wait.ms": "10",
    # With every poll Spark asks the broker twice where the log begins and ends; by default a poll gives 500 records
    # at most, of 1 MiB together.
    "kafka.max.poll.records": "100000",
    "kafka.max.partition.fetch.bytes": str(16 * 1024 * 1024),
}

SINK = {
    # An answer that one broker alone has may be lost with it, and a commit was promised to last.
    "kafka.acks": "all",
    # Nothing else comes to fill a batch that lingers.
    "kafka.linger.ms": "0",
    # All answers of a batch come at once, and the batch waits until the broker has them: by the default of 16 KiB
    # in dozens of requests.
    "kafka.batch.size": str(512 * 1024),
    "kafka.max.request.size": str(MAX_ROW_BYTES + BATCH_OVERHEAD_BYTES),
}


def spark_settings(options: JobOptions, jars: Jars) -> dict[str, str]:
    """All Spark settings of the job; what the user gave as ``spark.<key>`` comes last."""
    settings = {
        **STREAMING,
        **PROFILES[options.profile].spark,
        **PYTHON_WORKERS,
        "spark.app.name": "group-coordinator",
        "spark.master": options.master,
        "spark.driver.memory": options.driver_memory,
        f"spark.executorEnv.{python_worker.VARIABLE}": options.python_worker,
        "spark.driver.defaultJavaOptions": " ".join(DEFAULT_JVM_FLAGS),
        "spark.driver.extraJavaOptions": " ".join(JVM_FLAGS),
    }
    if options.is_local:
        # A class path needs no copying to executors that are the driver itself.
        class_path = settings["spark.driver.extraClassPath"] = extra_class_path(jars)
        if archive := class_archive(class_path):
            settings["spark.driver.extraJavaOptions"] += f" -XX:SharedArchiveFile={archive}"
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        if local_path(options.checkpoint) is not None:
            settings |= LOCAL_CHECKPOINT
    else:
        settings["spark.jars"] = ",".join(map(str, jars.connector))
    return settings | {f"spark.{key}": value for key, value in options.spark.items()}


def extra_class_path(jars: Jars) -> str:
    """What a local driver needs besides pyspark's own jars."""
    return os.pathsep.join(map(str, jars.connector))


def forget_hadoop_defaults(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Leave Hadoop's configuration with nothing but what the settings say.

    Every batch serializes the whole of it for its tasks, all of Hadoop's defaults (of HDFS, YARN, S3, ...) included: a
    sixth of the driver's work. A local checkpoint needs none of them.
    """
    # A class of Hadoop that is loaded later brings its defaults, and with them all others back; the session's state is
    # the last to load some.
    session: Any = spark._jsparkSession
    session.sessionState()
    context: Any = spark.sparkContext._jsc
    configuration = context.hadoopConfiguration()
    configuration.clear()
    prefix = "spark.hadoop."
    for key, value in settings.items():
        if key.startswith(prefix):
            configuration.set(key.removeprefix(prefix), value)


@contextmanager
def spark_session(
    settings: Mapping[str, str],
    *,
    inherited: tuple[int, ...] = (),
    jvm_end_limit_seconds: float = JVM_END_LIMIT_SECONDS,
) -> Iterator[SparkSession]:
    """A session on a JVM of its own, which inherits the file descriptors and ends with the context.

    The JVM is started in a session (a process group) of its own: a Ctrl-C or SIGTERM for our whole group must
    reach it through us only, after the batch in flight. It ends with us all the same, since its standard input
    is a pipe of ours. Under ``spark-submit`` the JVM is there already, and is used.
    """
    # The workers run in the environment that this process runs in; on a cluster, each host knows its own. Spark's
    # `local-cluster` is a cluster of processes on this host.
    if settings["spark.master"].startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    # What py4j logs, it also raises.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    gateway = _launched(conf, {"start_new_session": True, "pass_fds": inherited})
    jvm: subprocess.Popen[bytes] | None = gateway.proc
    if jvm is not None:
        threading.Thread(target=_pass_on, args=(jvm.stderr,), name="jvm-stderr", daemon=True).start()
    try:
        context = SparkContext(conf=conf, gateway=gateway)
        yield SparkSession(context)
        context.stop()
    except JVM_IS_GONE as error:
        if jvm is None or _exit_code(jvm) is None:
            raise
        raise CannotRun(f"Spark's JVM ended by itself, with exit code {_exit_code(jvm)}") from error
    finally:
        _end(gateway, jvm, jvm_end_limit_seconds)


def _launched(conf: SparkConf, how: dict[str, Any]) -> Any:
    """The gateway of a new JVM.

    Launched on a thread of its own, because interrupts are raised in the main thread: one that came in the
    middle of a launch would leave a JVM that nobody knows, and that does not end by itself.
    """
    how |= {"stdout": sys.stderr, "stderr": subprocess.PIPE}
    launch = ThreadPoolExecutor(1, "jvm-launcher").submit(launch_gateway, conf, how)
    try:
        return launch.result()
    except KeyboardInterrupt:
        gateway: Any = launch.result()
        _end(gateway, gateway.proc)
        raise


def _pass_on(lines: IO[bytes]) -> None:
    """The JVM's standard error is ours, less what no setting can keep it from saying at every start."""
    for line in lines:
        if not line.startswith(SAID_AT_EVERY_START):
            sys.stderr.buffer.write(line)
            sys.stderr.flush()


def _exit_code(jvm: "subprocess.Popen[bytes]") -> int | None:
    """The exit code of a JVM that does not answer; None when it has not ended."""
    try:
        return jvm.wait(JVM_END_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _end(gateway: Any, jvm: "subprocess.Popen[bytes] | None", limit_seconds: float = JVM_END_LIMIT_SECONDS) -> None:
    """End the JVM, and let pyspark forget it, so that this process can start another one."""
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    if jvm is None:
        return
    gateway.shutdown()
    assert jvm.stdin is not None
    jvm.stdin.close()
    try:
        jvm.wait(limit_seconds)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()
