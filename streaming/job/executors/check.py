"""A look at the executors before the query starts: one line says which of them lacks what."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.job.checkpoints.local_folder import checkpoint_location
from streaming.job.executors.look import Sight, look
from streaming.job.session import PYTHON_VARIABLE, SMALL_NETWORK_BUFFERS
from streaming.job.spark_internals.checkpoint_layout.start_check import METADATA
from streaming.job.spark_internals.java_objects import JavaFailure, executor_count
from streaming.job.spark_internals.python_worker.worker_choice import PythonWorker

CONNECT_SECONDS = 5.0
EXECUTOR_SECONDS = 60.0
ALL_EXECUTORS_SECONDS = 20.0
"""How long the others may take once the first one has run a task."""

POLL_SECONDS = 0.2
TASKS_FOR_EACH_EXECUTOR = 4
"""Spark does not promise where a task runs: with several for each, every executor gets one in practice."""

_PLACE = re.compile(r"\((\S+) executor (\S+?)\): ")
_FROM_PYTHON = re.compile(r"Error from python worker:\s*(?:\S+: )?(.+)")
_MISSING_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_MISSING_MODULE = re.compile(r"No module named '?([\w.]+)'?")


def require_master(master: str) -> None:
    """Check that a standalone master can be reached; Spark itself would try for a minute, and end with a stack trace.

    Raises:
        CannotRun: none of the masters in a ``spark://`` URL accepts connections.
    """
    parts = urlsplit(master)
    if parts.scheme != "spark":
        return
    reasons = []
    for address in parts.netloc.split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), CONNECT_SECONDS):
                return
        except (OSError, ValueError) as error:
            reasons.append(f"{address}: {error}")
    raise CannotRun(f"no Spark master answers at {master} ({'; '.join(reasons)}): check the address, and that it runs")


def check_executors(spark: SparkSession, checkpoint: Path | None, needed: int) -> str | None:
    """Wait for executors, and see that each can run the coordinator's tasks and reach the checkpoint.

    ``checkpoint`` is its folder on this host's file system; None on any other file system. It is made if need be.
    ``needed``: as many as a batch has tasks at once. Spark leaves a state where its first batch has put it: of two
    partitions that begin on one executor, one waits for the other for as long as the query runs. Returns a warning if
    there are fewer.

    Raises:
        CannotRun: there is no executor, or one of them cannot run the tasks, or lacks the folder.
    """
    with ExitStack() as stack:
        file = None if checkpoint is None else stack.enter_context(_file_in(checkpoint))
        deadline = time.monotonic() + ALL_EXECUTORS_SECONDS
        while len(seen := sights(spark, file)) < needed and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        for executor in seen:
            if not executor.sees_file:
                raise CannotRun(
                    f"an executor on {executor.host} does not see what this host writes to checkpoint {checkpoint}: "
                    "use s3a://, hdfs:// or a folder that all hosts share under this path"
                )
    if len(seen) >= needed:
        return None
    present = counted(len(seen), "executor")
    return f"warning: {present} for the {needed} tasks that a batch has at once: some of them wait for others"


def sights(spark: SparkSession, file: Path | None = None) -> list[Sight]:
    """Wait for an executor, and look at each, also for a file that this host has written.

    Raises:
        CannotRun: there is no executor, or one of them cannot run the coordinator's tasks.
    """
    context = spark.sparkContext
    executors = partial(executor_count, spark)
    deadline = time.monotonic() + EXECUTOR_SECONDS
    while not executors():
        if time.monotonic() >= deadline:
            memory = context.getConf().get("spark.executor.memory", "1g")
            raise CannotRun(
                f"{context.master} has started no executor within {EXECUTOR_SECONDS:g} s: check that it has workers "
                f"with a free core and {memory} of free memory (spark.executor.memory)"
            )
        time.sleep(POLL_SECONDS)
    tasks = executors() * TASKS_FOR_EACH_EXECUTOR
    try:
        seen = context.parallelize(range(tasks), tasks).map(partial(_look, None if file is None else str(file)))
        return list({(each.host, each.folder): each for each in seen.collect()}.values())
    except JavaFailure as failure:
        raise CannotRun(described_task_failure(str(failure.java_exception.getMessage()))) from failure


def java_versions(spark: SparkSession) -> list[str]:
    """The versions of Java of the executors."""
    return sorted(set(_java_properties(spark, "java.version").values()))


def lacking(spark: SparkSession, worker: PythonWorker) -> dict[str, int]:
    """How many executors lack what the job has set for them: the Python worker, and the options of Java.

    Raises as :func:`sights`.
    """
    name, _, value = SMALL_NETWORK_BUFFERS.removeprefix("-D").partition("=")
    return {
        "python-worker": sum(each.worker != worker for each in sights(spark)),
        "java-options": sum(found != value for found in _java_properties(spark, name).values()),
    }


def _java_properties(spark: SparkSession, name: str) -> dict[tuple[str, str], str]:
    """A system property of each executor's Java, by the executor's host and working folder."""
    tasks = executor_count(spark) * TASKS_FOR_EACH_EXECUTOR
    calls = [
        "java_method('java.lang.System', 'getenv', 'HOSTNAME')",
        *(f"java_method('java.lang.System', 'getProperty', '{each}')" for each in ("user.dir", name)),
    ]
    found = spark.range(0, tasks, 1, tasks).selectExpr(*calls).collect()
    return {(host, folder): value for host, folder, value in found}


def reading_failure(spark: SparkSession, checkpoint: str) -> str | None:
    """Let an executor read the file ``metadata`` of an existing checkpoint; the reason if it cannot, None if it can."""
    try:
        spark.read.text(f"{checkpoint_location(checkpoint)}/{METADATA}").collect()
    except PySparkException as failure:
        return described_task_failure(str(failure))
    return None


def described_task_failure(message: str) -> str:
    """The failure of a task in one line: the executor, what it lacks, and what to do."""
    place = _PLACE.search(message)
    where = f"executor {place[2]} on {place[1]}" if place else "an executor"
    rest = message[place.end() :] if place else message
    if missing := _MISSING_PROGRAM.search(rest):
        program = missing[1]
        return f"{where} has no {program}: install it there, or name another Python with {PYTHON_VARIABLE}"
    from_python = _FROM_PYTHON.search(rest)
    reason = (from_python[1] if from_python else rest.partition("\n")[0]).strip()
    if missing := _MISSING_MODULE.search(rest):
        return (
            f"{where} has a Python without {missing[1]}: unset {PYTHON_VARIABLE} and spark.archives, so that the job's "
            "packages travel to it, or install spark-group-coordinator[job] there"
        )
    return f"{where} cannot run the job's tasks: {reason}"


@contextmanager
def _file_in(folder: Path) -> Iterator[Path]:
    """A file in a folder, for as long as the block."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, prefix=".seen-by-executors-") as file:
            yield Path(file.name)
    except OSError as error:
        raise CannotRun(f"checkpoint {folder}: {error.strerror}: choose another folder") from error


def _look(file: str | None, _: int) -> Sight:
    return look(file)
