"""The tables as Spark data frames and views, as of one time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from streaming.contract.errors import CannotRun
from streaming.contract.topics import TopicNames
from streaming.explain.tables.checkpoint_batches import CompleteBatch, batch_at
from streaming.explain.tables.columns import arrow_schema, record_batches, spark_schema
from streaming.explain.tables.group_states import GroupsFold, GroupState, rows_in
from streaming.explain.tables.log_rows import JournalRow, LogRecord, RequestRow, journal_row, request_row
from streaming.explain.tables.rebalance_rows import RebalanceRow, rebalance_rows
from streaming.explain.time_travel.point_in_time import point_in_time
from streaming.explain.time_travel.row_types import TableRow
from streaming.explain.time_travel.rows import GROUP_TABLES
from streaming.job.checkpoints.checkpoint import Checkpoint
from streaming.job.checkpoints.local_folder import checkpoint_location
from streaming.job.session import READ_COMMITTED
from streaming.job.spark_internals.checkpoint_layout.state_reader import state_frame
from streaming.job.spark_internals.registry import CHECKPOINT_LAYOUT, reason_to_leave_out

LOG_TABLES: Mapping[str, type[TableRow]] = {"journal": JournalRow, "requests": RequestRow}

TABLES: Mapping[str, type[TableRow]] = {
    **{name: table.row_type for name, table in GROUP_TABLES.items()},
    "rebalances": RebalanceRow,
    **LOG_TABLES,
}
"""All tables, with the type of their rows."""

STATE_COLUMNS = pa.schema([("groupId", pa.string()), ("snapshot", pa.binary()), ("known", pa.string())])
STATE_DDL = "groupId string, snapshot binary, known string"


@dataclass(frozen=True)
class Sources:
    """Where the tables are read from.

    kafka: the configuration of Kafka's Java client, with ``bootstrap.servers``; empty without brokers: then there are
        no rebalances, no journal and no requests, and groups are as of a batch of the checkpoint.
    checkpoint: the job's checkpoint, a path or a URI; None without one: then groups are known as far as the journal
        goes back.
    """

    kafka: Mapping[str, str] = field(default_factory=dict)
    checkpoint: str | None = None
    topics: TopicNames = field(default_factory=TopicNames)


class Tables:
    """The coordinator's tables as of a time: ``groups``, ``members``, ``assignments``, ``targets``, ``offsets``, and
    with brokers ``rebalances``, ``journal`` and ``requests``.

    The groups are computed once, at their first use: the tables of groups agree with each other.

    Args:
        spark: A session with the Kafka connector; :func:`~streaming.explain.tables.open_tables` starts one.
        sources: Where to read.
        time: The time in ms since the epoch; None for now.
    """

    def __init__(self, spark: SparkSession, sources: Sources, time: int | None = None) -> None:
        self._spark, self._sources, self._time = spark, sources, time
        self._states: DataFrame | None = None

    @property
    def names(self) -> list[str]:
        """The names of the tables."""
        return list(TABLES if self._sources.kafka else GROUP_TABLES)

    def at(self, time: str | datetime) -> "Tables":
        """The tables as of another time: a datetime, an ISO 8601 time, or an age such as ``2h``.

        Raises ValueError for a text that is not a time.
        """
        text = time.isoformat() if isinstance(time, datetime) else time
        return Tables(self._spark, self._sources, point_in_time(text, datetime.now(UTC)))

    def table(self, name: str) -> DataFrame:
        """A table as a data frame. Raises as :meth:`sql`."""
        if name in GROUP_TABLES:
            return self._group_states().mapInArrow(group_rows(name), spark_schema(TABLES[name]))
        if name not in self.names:
            raise CannotRun(f"there is no table {name!r}: there are {', '.join(self.names)}")
        return {"rebalances": self._rebalances, "journal": self._journal, "requests": self._requests}[name]()

    def register(self, prefix: str = "") -> None:
        """Make each table a temporary view of the session; ``prefix`` goes before its name.

        With prefixes, one query can compare two times. Raises as :meth:`sql`.
        """
        for name in self.names:
            self.table(name).createOrReplaceTempView(prefix + name)

    def sql(self, query: str) -> DataFrame:
        """The result of a query on the tables.

        Raises:
            CannotRun: the checkpoint keeps no batch that old and there are no brokers, or it cannot be read.
            pyspark.errors.PySparkException: the query or a topic cannot be read.
        """
        self.register()
        return self._spark.sql(query)

    def close(self) -> None:
        """Free the memory that the groups take in Spark."""
        if self._states is not None:
            self._states.unpersist()
            self._states = None

    def _group_states(self) -> DataFrame:
        if self._states is None:
            self._states = self._folded().persist()
        return self._states

    def _folded(self) -> DataFrame:
        batch = self._batch()
        if batch is None:
            stored = self._spark.createDataFrame([], "groupId string, stored binary")
            fold = GroupsFold(self._time)
        else:
            assert self._sources.checkpoint is not None
            location = checkpoint_location(self._sources.checkpoint)
            stored = state_frame(self._spark, location, batch.number, batch.store).select("groupId", "stored")
            fold = GroupsFold(self._time, batch.read, batch.epoch)
        entries = self._entries()
        return stored.groupBy("groupId").cogroup(entries.groupBy("groupId")).applyInArrow(folded_by(fold), STATE_DDL)

    def _batch(self) -> CompleteBatch | None:
        """The batch of the checkpoint to begin with; None to begin with the journal."""
        if self._sources.checkpoint is None:
            if not self._sources.kafka:
                raise CannotRun("the tables need brokers, or a checkpoint, or both")
            return None
        if reason := reason_to_leave_out(CHECKPOINT_LAYOUT, self._spark):
            raise CannotRun(f"the checkpoint cannot be read: {CHECKPOINT_LAYOUT.name} is {reason}")
        checkpoint = Checkpoint(self._spark, checkpoint_location(self._sources.checkpoint))
        numbers = [int(name) for name in checkpoint.names("commits") if name.isdigit()]

        def plan_text(number: int) -> str:
            return checkpoint.text(f"offsets/{number}")

        found = batch_at(numbers, plan_text, checkpoint.starts(), self._sources.topics.requests, self._time)
        if found is None and not self._sources.kafka:
            raise CannotRun(
                f"{self._sources.checkpoint} keeps no complete batch {'that old' if numbers else 'yet'}: "
                "give brokers, so that the journal is read"
            )
        return found

    def _entries(self) -> DataFrame:
        """The journal's records by group id; none without brokers."""
        if not self._sources.kafka:
            return self._spark.createDataFrame([], "groupId string, partition int, offset bigint, value binary")
        records = self._topic(self._sources.topics.journal).where("key is not null")
        return records.selectExpr("make_valid_utf8(cast(key as string)) groupId", "partition", "offset", "value")

    def _rebalances(self) -> DataFrame:
        told = self._entries().groupBy("groupId")
        return told.applyInArrow(rebalances_until(self._time), spark_schema(RebalanceRow))

    def _journal(self) -> DataFrame:
        """The journal without repeated entries: that of the newest coordinator holds."""
        rows = self._log_rows(self._sources.topics.journal, "journal")
        same = Window.partitionBy("groupId", "incarnation", "sequence").orderBy(
            sf.desc("jobEpoch"), "partition", "offset"
        )
        first = rows.withColumn("repeated", sf.row_number().over(same)).where("repeated = 1").drop("repeated")
        return first if self._time is None else first.where(sf.unix_millis("timestamp") <= self._time)

    def _requests(self) -> DataFrame:
        rows = self._log_rows(self._sources.topics.requests, "requests")
        return rows if self._time is None else rows.where(sf.unix_millis("appendedAt") <= self._time)

    def _log_rows(self, topic: str, name: str) -> DataFrame:
        records = self._topic(topic).selectExpr("key", "value", "partition", "offset", "timestamp appendedAt")
        return records.mapInArrow(log_rows(name), spark_schema(TABLES[name]))

    def _topic(self, topic: str) -> DataFrame:
        """The records that a topic has."""
        kafka = READ_COMMITTED | {f"kafka.{key}": value for key, value in self._sources.kafka.items()}
        # A batch that reads what retention deletes meanwhile would fail.
        reader = self._spark.read.format("kafka").options(**kafka).option("failOnDataLoss", "false")
        return reader.option("subscribe", topic).load()


def folded_by(fold: GroupsFold) -> Any:
    """The function for ``applyInArrow``: a group's stored state and its entries, to its :class:`GroupState`."""

    # Spark counts the parameters: an object with __call__ would have one more.
    def folded(key: Any, stored: Any, entries: Any) -> Any:
        state = fold.state_of(key[0].as_py(), next(iter(stored["stored"].to_pylist()), None), _in_order(entries))
        columns = [[] for _ in STATE_COLUMNS] if state is None else [[value] for value in state]
        return pa.Table.from_arrays(
            [pa.array(column, column_type) for column, column_type in zip(columns, STATE_COLUMNS.types, strict=True)],
            schema=STATE_COLUMNS,
        )

    return folded


def rebalances_until(time: int | None) -> Any:
    """The function for ``applyInArrow``: a group's entries, to its rebalances that ended until then."""

    def rebalances(key: Any, entries: Any) -> Any:
        rows = rebalance_rows(key[0].as_py(), _in_order(entries), time)
        return pa.Table.from_batches(list(record_batches(RebalanceRow, rows)), schema=arrow_schema(RebalanceRow))

    return rebalances


def group_rows(table: str) -> Any:
    """The function for ``mapInArrow``: the states of groups, to the rows of a table."""

    def rows(batches: Iterable[Any]) -> Iterator[Any]:
        states = (GroupState(*values) for batch in batches for values in _values(batch))
        yield from record_batches(TABLES[table], (row for state in states for row in rows_in(table, state)))

    return rows


def log_rows(table: str) -> Any:
    """The function for ``mapInArrow``: the records of a topic, to the rows of a table."""
    row_of: Callable[[LogRecord], TableRow | None] = journal_row if table == "journal" else request_row

    def rows(batches: Iterable[Any]) -> Iterator[Any]:
        records = (LogRecord(*values) for batch in batches for values in _values(batch))
        found = (row_of(record) for record in records)
        yield from record_batches(TABLES[table], (row for row in found if row is not None))

    return rows


def _in_order(entries: Any) -> list[bytes | None]:
    """The values of a group's records in their order: they are in one partition of the journal."""
    values: list[bytes | None] = entries.sort_by([("partition", "ascending"), ("offset", "ascending")])[
        "value"
    ].to_pylist()
    return values


def _values(batch: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)
