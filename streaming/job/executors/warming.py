"""New executors on other hosts do once, before a batch needs them, what makes their first task slow."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.job.checkpoints.local_folder import checkpoint_location
from streaming.job.executors.look import folder_with_operator
from streaming.job.spark_internals.checkpoint_layout.start_check import METADATA
from streaming.job.spark_internals.java_objects import (
    JVM_IS_GONE,
    JavaFailure,
    executor_addresses,
    newest_progress_after,
)

POLL_SECONDS = 1.0

TASKS_AT_A_POLL = 5
"""Spark does not promise where a task runs; with one after the other, each free executor gets one in practice. Several
at once would make the tasks of a batch wait, which come later."""

POLLS_AFTER_A_JOIN = 60
"""An executor that has joined gets tasks only when it has unpacked its archives."""


@contextmanager
def warming_executors(spark: SparkSession, query: StreamingQuery, checkpoint: str) -> Iterator[None]:
    """Within the block, let each executor that has joined read a file of the checkpoint in a Python worker.

    So one that goes on in place of another has loaded the classes of the checkpoint's file system, and has started the
    process from which its Python workers are forked. This begins after the query's first batch: Spark leaves a state
    where that has put it, and an executor that was busy meanwhile would get none.
    """
    has_ended = threading.Event()
    arguments = spark, query, f"{checkpoint_location(checkpoint)}/{METADATA}", has_ended
    threading.Thread(target=_warm_new_ones, args=arguments, name="executors-warm-up", daemon=True).start()
    try:
        yield
    finally:
        has_ended.set()


def _warm_new_ones(spark: SparkSession, query: StreamingQuery, file: str, has_ended: threading.Event) -> None:
    known: frozenset[str] = frozenset()
    cold = 0
    folders: set[str] = set()
    polls = POLLS_AFTER_A_JOIN
    has_begun = False
    while not has_ended.wait(POLL_SECONDS):
        try:
            has_begun = has_begun or newest_progress_after(query, -1) is not None
            if not has_begun:
                continue
            present = executor_addresses(spark)
            if present - known:
                polls = POLLS_AFTER_A_JOIN
            # The driver has an address, too, and one of those that were cold may have died.
            cold = min(cold + len(present - known), len(present) - 1)
            known = present
            if cold and polls:
                polls -= 1
                cold -= _warm(spark.read.text(file).mapInArrow(folder_with_operator, "folder string"), cold, folders)
        except (PySparkException, JavaFailure):
            # An executor has died meanwhile, or the store does not answer.
            continue
        except JVM_IS_GONE:
            return


def _warm(task: DataFrame, cold: int, folders: set[str]) -> int:
    """Run one task after the other until ``cold`` executors have had their first one; returns how many have.

    Adds their working folders to those of the others.
    """
    before = len(folders)
    for _ in range(TASKS_AT_A_POLL):
        folders.update(row.folder for row in task.collect())
        if len(folders) - before >= cold:
            break
    return len(folders) - before
