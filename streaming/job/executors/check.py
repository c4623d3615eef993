"""A look at the executors before the query starts: one line says which of them lacks what."""

import re
import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from streaming.contract.errors import CannotRun
from streaming.job.session import PYTHON_VARIABLE
from streaming.job.spark_internals.java_objects import JavaFailure

CONNECT_SECONDS = 5.0
EXECUTOR_SECONDS = 60.0
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


def check_executors(spark: SparkSession) -> None:
    """Wait for an executor, and run a task on each, which imports what the coordinator's tasks import.

    Raises:
        CannotRun: there is no executor, or one of them cannot run the tasks.
    """
    context = spark.sparkContext
    executors = _executors(spark)
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
        context.parallelize(range(tasks), tasks).foreach(_import_operator)
    except JavaFailure as failure:
        raise CannotRun(described_task_failure(str(failure.java_exception.getMessage()))) from failure


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


def _executors(spark: SparkSession) -> Callable[[], int]:
    """A function that counts the executors, without the driver."""
    java_context: Any = spark.sparkContext._jsc
    return lambda: int(java_context.sc().getExecutorMemoryStatus().size()) - 1


def _import_operator(_: int) -> None:
    import streaming.job.operator  # noqa: F401
