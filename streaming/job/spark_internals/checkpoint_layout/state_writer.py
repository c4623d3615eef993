"""Write a checkpoint of the coordinator's query from outside of it: a query of the same shape stores given groups.

Spark has no way to write the state of a query but to run one. So a query with the coordinator's stateful operator, its
key, its schema, its number of partitions and its state store reads the groups from a file, in one batch, and stores
them. Then the batch is said to have read the requests topic instead of the file. What Spark compares when the
coordinator's query starts on it: the schema and the partitions of the state, the name and number of the operator, the
settings in the offset log, and the number of sources. The id of the query and the sink are not part of a checkpoint's
state, and a source of Kafka needs no file of its own once a batch has offsets.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from streaming.contract.errors import CannotRun
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import Outcome
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.operator import OUTPUT_SCHEMA, STATE_SCHEMA, GroupOperator
from streaming.job.rows.records import KafkaRecord
from streaming.job.spark_internals.checkpoint_layout.state_reader import StoredGroup
from streaming.job.spark_internals.offset_log import STATE_PARTITIONS, with_offsets
from streaming.job.spark_internals.registry import CHECKPOINT_WRITING, reason_to_leave_out
from streaming.job.state_stores import STATE_STORES, StateStore

GROUPS_A_CHUNK = 5_000
"""How many groups are in memory as Arrow's columns at once, and in a row group of the file."""

COLUMNS = (
    StructType()
    .add("groupId", StringType())
    .add("timestamp", LongType())
    .add("partition", IntegerType())
    .add("offset", LongType())
    .add("key", BinaryType())
    .add("value", BinaryType())
)
"""The columns of the coordinator's operator. ``value`` has the group, ``timestamp`` when to call it."""

ARROW_COLUMNS = to_arrow_schema(COLUMNS, timezone="UTC")

NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


class StoringOperator(GroupOperator):
    """The coordinator's operator, as far as Spark and the Python workers see: it stores the group that it is given."""

    def outcome(
        self,
        group_id: str,
        records: list[KafkaRecord],
        stored: StateRow | None,
        batch_time: int,
        *,
        more_follow: bool = False,
    ) -> Outcome:
        """Store the group in the only record."""
        (record,) = records
        return Outcome([], StateRow.unpacked(record.value or b""), record.timestamp or None)


def write_state(
    spark: SparkSession,
    groups: Iterable[StoredGroup],
    checkpoint: Path,
    working_folder: Path,
    state_partitions: int,
    store: StateStore,
) -> None:
    """Write a checkpoint with these groups as of its batch 0.

    The session keeps the settings of the state. Neither folder may exist. :func:`name_offsets` makes it a checkpoint of
    the coordinator's query.

    Raises:
        CannotRun: this version of Spark may need other files, or the query has failed.
    """
    if reason := reason_to_leave_out(CHECKPOINT_WRITING, spark):
        raise CannotRun(f"a checkpoint cannot be written: {CHECKPOINT_WRITING.name} is {reason}")
    working_folder.mkdir()
    _write_file(groups, working_folder / "groups.parquet")
    settings = {
        **STATE_STORES[store],
        STATE_PARTITIONS: str(state_partitions),
        # Without this, a query with timeouts always has another batch to run.
        NO_DATA_BATCHES: "false",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    rows = spark.readStream.schema(COLUMNS).parquet(str(working_folder))
    if state_partitions == 1:
        # As in the coordinator's query.
        rows = rows.coalesce(1)
    operator = StoringOperator(Settings(TopicNames(), response_partitions=1))
    stored = rows.groupBy("groupId").applyInPandasWithState(
        operator, OUTPUT_SCHEMA, STATE_SCHEMA, "append", "ProcessingTimeTimeout"
    )
    written = stored.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    try:
        written.option("checkpointLocation", checkpoint.as_uri()).start().awaitTermination()
    except PySparkException as error:
        raise CannotRun(f"the groups cannot be written: {str(error).partition(chr(10))[0]}") from error


def name_offsets(checkpoint: Path, topic: str, offsets: Mapping[int, int], time: int) -> None:
    """Let the only batch of a written checkpoint have read the requests topic up to these offsets, by partition.

    ``time`` is the time of that batch, ms since the epoch.
    """
    plan = checkpoint / "offsets" / "0"
    text = with_offsets(plan.read_text(), topic, offsets, time)
    # Hadoop's checksum is that of the former contents; a file without one is not checked.
    plan.with_name(f".{plan.name}.crc").unlink(missing_ok=True)
    plan.write_text(text)
    shutil.rmtree(checkpoint / "sources", ignore_errors=True)


def _write_file(groups: Iterable[StoredGroup], path: Path) -> None:
    with pq.ParquetWriter(path, ARROW_COLUMNS, compression="none", use_dictionary=False) as writer:
        remaining = iter(groups)
        while chunk := list(islice(remaining, GROUPS_A_CHUNK)):
            writer.write_table(pa.table(list(_columns(chunk)), schema=ARROW_COLUMNS))


def _columns(chunk: Sequence[StoredGroup]) -> Iterator[Sequence[object]]:
    nothing = [0] * len(chunk)
    yield [group.group_id for group in chunk]
    yield [max(0, group.wake_at) for group in chunk]
    yield nothing
    yield nothing
    yield [b""] * len(chunk)
    yield [group.stored for group in chunk]
