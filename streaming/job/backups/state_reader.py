"""Read the groups of a checkpoint, with Spark's own reader of a query's state."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from streaming.embedded.jars import resolve_jars
from streaming.job.options import JobOptions
from streaming.job.session import spark_session, spark_settings
from streaming.job.state_stores import STATE_STORES, StateStore


class UnreadableState(Exception):
    """Spark cannot load the state."""


def stored_groups(options: JobOptions, checkpoint: Path, batch: int, store: StateStore) -> Iterator[tuple[str, bytes]]:
    """The group id and the packed state row of each group after ``batch``. Writes nothing.

    Raises:
        UnreadableState: a file of the state is missing or damaged.
        JarResolutionError, MissingPrerequisite: see :func:`streaming.embedded.jars.resolve_jars`.
    """
    # The folder is local, so a local session reads it whatever the job's master is.
    local = msgspec.structs.replace(options, master="local[*]", checkpoint=str(checkpoint))
    with spark_session(spark_settings(local, resolve_jars())) as spark:
        for key, value in STATE_STORES[store].items():
            spark.conf.set(key, value)
        # The reader asks a service of the session that only its manager of queries starts.
        _ = spark.streams
        reader = spark.read.format("statestore").option("path", checkpoint.as_uri()).option("batchId", batch)
        try:
            # Many times as fast as toLocalIterator, which pickles each row.
            rows = reader.load().selectExpr("key.groupId", "value.groupState.stored").toArrow()
        except (Py4JJavaError, PySparkException) as error:
            raise UnreadableState(_root_cause(error)) from error
    for rows_of_batch in rows.to_batches():
        yield from zip(*(column.to_pylist() for column in rows_of_batch.columns), strict=True)


def _root_cause(error: Exception) -> str:
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if cause is None:
        return str(error).partition("\n")[0]
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).partition("\n")[0]
