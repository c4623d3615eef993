"""The Java objects behind pyspark's: for Java methods that Spark and Hadoop document, and pyspark does not offer."""

from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

JavaFailure = Py4JJavaError
"""What a call raises whose Java method has thrown an exception."""

JVM_IS_GONE = (Py4JError, ConnectionError)
"""What a call into a JVM that has ended raises: py4j tries to connect again, and may fail before or after that."""


def java_virtual_machine(spark: SparkSession) -> Any:
    """The JVM's packages as attributes: ``java_virtual_machine(spark).java.util.ArrayList()``."""
    jvm: Any = spark._jvm
    return jvm


def hadoop_configuration(spark: SparkSession) -> Any:
    """The session's ``org.apache.hadoop.conf.Configuration``."""
    context: Any = spark.sparkContext._jsc
    return context.hadoopConfiguration()


def executor_count(spark: SparkSession) -> int:
    """How many executors there are beside the driver."""
    return len(executor_addresses(spark)) - 1


def executor_addresses(spark: SparkSession) -> frozenset[str]:
    """The host and port of each executor, and of the driver; an executor that joins later has another port."""
    context: Any = spark.sparkContext._jsc
    return frozenset(context.sc().getExecutorMemoryStatus().keys().mkString(",").split(","))


def progress_after(query: StreamingQuery, batch_id: int) -> list[str]:
    """The progress of the completed batches after ``batch_id`` as JSON, oldest first, as far as Spark has kept it.

    pyspark's ``recentProgress`` makes some hundred calls into the JVM for each batch that is kept. While there is no
    new batch, this makes at most four calls.
    """
    return list(_newest_first(query, batch_id))[::-1]


def newest_progress_after(query: StreamingQuery, batch_id: int) -> str | None:
    """The progress of the newest completed batch as JSON, if it is after ``batch_id``."""
    return next(_newest_first(query, batch_id), None)


def _newest_first(query: StreamingQuery, batch_id: int) -> Iterator[str]:
    java_query: Any = query._jsq
    newest = java_query.lastProgress()
    if newest is None or newest.batchId() <= batch_id + (not _is_of_batch(newest)):
        return
    for progress in reversed(java_query.recentProgress()):
        if progress.batchId() <= batch_id:
            return
        if _is_of_batch(progress):
            yield str(progress.json())
            if progress.batchId() == batch_id + 1:
                return


def _is_of_batch(progress: Any) -> bool:
    """Whether a report is one of a batch. Spark also reports that it has found nothing to read: before a batch, and
    with its id."""
    return bool(progress.durationMs().containsKey("addBatch"))
