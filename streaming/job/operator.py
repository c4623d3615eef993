"""The function for ``applyInPandasWithState``: takes one group through a batch, from records to rows and state.

The part without Spark is in :mod:`streaming.job.group_batch`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

from streaming.job import measures
from streaming.job.due_times import due_time
from streaming.job.group_batch.processing import Outcome
from streaming.job.group_batch.replay import process_batch
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.log_order import sort_records
from streaming.job.rows.records import KafkaRecord, Row

INPUT_COLUMNS = KafkaRecord._fields
"""The columns of a record that the query passes on besides the group id, by the names of :class:`KafkaRecord`."""

OUTPUT_SCHEMA = (
    StructType()
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("measures", BinaryType())
)
STATE_SCHEMA = "stored binary"
"""A :class:`StateRow`. Spark refuses a checkpoint with another schema, so this never changes; the format of the bytes
may.

It is one column because Spark decodes the row of every group in every batch to read its timeout, and compiles the
decoder several times a batch: both cost time per column.
"""


@dataclass(frozen=True)
class GroupOperator:
    """The function for ``applyInPandasWithState``, with ``ProcessingTimeTimeout``.

    pyspark's worker calls it with data frames; the Arrow-native worker calls :meth:`outcome` directly.
    """

    settings: Settings

    def __call__(self, key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        stored = StateRow.unpacked(bytes(state.get[0])) if state.exists else None
        batch_time = state.getCurrentProcessingTimeMs()
        outcome = self.outcome(key[0], records_in(frames), stored, batch_time)
        if outcome.state is not None:
            state.update((outcome.state.packed(),))
        elif stored is not None:
            state.remove()
        due_times = []
        if outcome.wake_at is not None:
            timeout = timeout_of(outcome.wake_at, batch_time)
            state.setTimeoutDuration(timeout - batch_time)
            due_times.append(due_time(timeout, batch_time))
        yield output_frame(outcome.rows, due_times)

    def outcome(
        self,
        group_id: str,
        records: list[KafkaRecord],
        stored: StateRow | None,
        batch_time: int,
        *,
        more_follow: bool = False,
    ) -> Outcome:
        """Sort the records, which Spark delivers in any order, and process the batch for the group."""
        sort_records(records)
        return process_batch(self.settings, group_id, records, stored, batch_time, more_follow=more_follow)


def timeout_of(wake_at: int, batch_time: int) -> int:
    """The timeout to set for a group that asks to be called from ``wake_at`` on: later than the batch (ms)."""
    return max(wake_at, batch_time + 1)


def output_columns(rows: Sequence[Row], due_times: Iterable[int] = ()) -> list[Sequence[Any]]:
    """Convert rows to the columns of :data:`OUTPUT_SCHEMA`.

    The first row carries the totals of their measures and the groups' due times. Without rows, a row without a topic
    is added to carry them; the query drops it.
    """
    *columns, measured = zip(*rows, strict=True) if rows else [()] * len(OUTPUT_SCHEMA)
    totals = measures.totals(measured, due_times)
    encoded = None if totals is None else totals.encoded()
    if rows:
        return [*columns, [encoded, *[None] * (len(rows) - 1)]]
    return [()] * len(OUTPUT_SCHEMA) if encoded is None else [*([None] for _ in columns), [encoded]]


def output_frame(rows: Sequence[Row], due_times: Iterable[int]) -> pd.DataFrame:
    """Turn rows into a frame of :func:`output_columns`."""
    # dtype object: a partition is null or an integer, and Spark concatenates the frames of many groups.
    return pd.DataFrame(dict(zip(OUTPUT_SCHEMA.names, output_columns(rows, due_times), strict=True)), dtype=object)


def records_in(frames: Iterator[pd.DataFrame]) -> list[KafkaRecord]:
    """The records of a group, from the frames in which Spark delivers them."""
    records: list[KafkaRecord] = []
    for frame in frames:
        columns = (frame[name].tolist() for name in INPUT_COLUMNS)
        records.extend(map(KafkaRecord._make, zip(*columns, strict=True)))
    return records
