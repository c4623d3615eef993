"""The Java objects behind pyspark's: for Java methods that Spark and Hadoop document, and pyspark does not offer."""

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

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


def progress_after(query: StreamingQuery, batch_id: int) -> list[str]:
    """The progress of the completed batches after ``batch_id`` as JSON, oldest first, as far as Spark has kept it.

    pyspark's ``recentProgress`` makes some hundred calls into the JVM for each batch that is kept.
    """
    java_query: Any = query._jsq
    newer = []
    for progress in reversed(java_query.recentProgress()):
        if progress.batchId() <= batch_id:
            break
        newer.append(str(progress.json()))
    return newer[::-1]


def last_progress(query: StreamingQuery) -> str | None:
    """Spark's newest report of a query as JSON, also of one that had nothing to do; None before the first."""
    java_query: Any = query._jsq
    progress = java_query.lastProgress()
    return None if progress is None else str(progress.json())
