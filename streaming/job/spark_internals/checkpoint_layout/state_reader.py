"""Read the groups of a checkpoint, with Spark's own reader of a query's state."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from streaming.job.state_stores import STATE_STORES, StateStore


class UnreadableState(Exception):
    """Spark cannot load the state."""


class StoredGroup(NamedTuple):
    """A group in Spark's state: its packed state row, and when Spark calls it without requests.

    ``wake_at`` is ms since the epoch; 0 or less if only a request can change the group.
    """

    group_id: str
    stored: bytes
    wake_at: int


def stored_groups(spark: SparkSession, checkpoint: Path, batch: int, store: StateStore) -> Iterator[StoredGroup]:
    """Each group after ``batch``. Writes nothing.

    Raises:
        UnreadableState: a file of the state is missing or damaged.
    """
    # Spark would also log the failure of every task, with its stack.
    spark.sparkContext.setLogLevel("OFF")
    try:
        # Many times as fast as toLocalIterator, which pickles each row.
        rows = state_frame(spark, checkpoint.as_uri(), batch, store).toArrow()
    except (Py4JJavaError, PySparkException) as error:
        raise UnreadableState(_root_cause(error)) from error
    for part in rows.to_batches():
        yield from map(StoredGroup._make, zip(*(column.to_pylist() for column in part.columns), strict=True))


def state_frame(spark: SparkSession, location: str, batch: int, store: StateStore) -> DataFrame:
    """The groups after ``batch`` of the checkpoint at ``location``, with the columns of :class:`StoredGroup`."""
    for key, value in STATE_STORES[store].items():
        spark.conf.set(key, value)
    # The reader asks a service of the session that only its manager of queries starts.
    _ = spark.streams
    reader = spark.read.format("statestore").option("path", location).option("batchId", batch)
    columns = "key.groupId", "value.groupState.stored", "value.timeoutTimestamp"
    return reader.load().selectExpr(*columns)


def _root_cause(error: Exception) -> str:
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if cause is None:
        return str(error).partition("\n")[0]
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).partition("\n")[0]
