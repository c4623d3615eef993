"""Run the operator on slices of Arrow columns, without pandas: the Python side of ``applyInPandasWithState``.

pyspark's own worker makes a pandas frame of every group in a batch, another one of the group's rows, and a third one of
its state: some hundreds of microseconds a group, most of a worker's time. This worker converts each record batch to
Python lists once. Groups are slices of these lists, and the rows of all groups are written as one record batch. Spark's
own operator, its state, timeouts and checkpoint are not affected.

The protocol between Spark and its workers is internal; :mod:`.worker_choice` decides when this worker runs.

A record batch from Spark has the columns of the data. Its last column has a struct for each group: the state, with
its properties as JSON, and which rows belong to the group. A record batch for Spark has three columns of structs, of
equal length: how many rows of the other two count, the rows of output, and the states.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyspark.sql.types
import pyspark.worker
from pyspark.sql.pandas.serializers import ApplyInPandasWithStateSerializer, ArrowStreamSerializer
from pyspark.sql.pandas.types import to_arrow_type

from streaming.job.due_times import due_time
from streaming.job.group_batch.processing import Outcome
from streaming.job.group_batch.state_row import StateRow
from streaming.job.operator import GroupOperator, output_columns, timeout_of
from streaming.job.rows.records import KafkaRecord, Row
from streaming.job.spilled_records import SpilledRecords

MAX_BATCH_BYTES = 64 * 1024 * 1024
"""The size at which a record batch for Spark is full. Its offsets have 32 bits, and one state may be this large."""

SLICE_BYTES = 32 * 1024 * 1024
"""The size from which the requests of a group that continue in a further record batch go to a file.

They are then handled in slices of this size, so that bytes bound the memory of a task.
"""

OUTPUT_STATE_FIELDS = 4
"""Fields of a group's state in a record batch for Spark: properties, key, value, old timeout."""

STATE_FIELDS = ("properties", "keyRowAsUnsafe", "object", "startOffset", "numRows", "isLastChunk")


def install() -> None:
    """Replace five functions and classes of pyspark's worker with those of this module."""
    worker: Any = pyspark.worker
    worker.ApplyInPandasWithStateSerializer = ColumnSerializer
    worker.wrap_grouped_map_pandas_udf_with_state = group_function
    # Every task parses its schemas again, and Spark pickles the state of every group as a call that parses the schema
    # and makes a Row: a third of a worker's time for a heartbeat.
    types: Any = pyspark.sql.types
    parse = lru_cache(types._parse_datatype_json_string)
    worker._parse_datatype_json_string = types._parse_datatype_json_string = parse
    types._create_row_inbound_converter = lambda _schema: _field_values
    guard = worker.fail_on_stopiteration
    # The guard would wrap the operator in a function. It is not needed: the operator raises nothing.
    worker.fail_on_stopiteration = lambda function: function if isinstance(function, GroupOperator) else guard(function)


def _field_values(*values: Any) -> tuple[Any, ...]:
    return values


class Properties(msgspec.Struct, rename="camel"):
    """The properties of a group's state, without its value. Times are ms since the epoch."""

    batch_processing_time_ms: int
    event_time_watermark_ms: int
    timeout_conf: str
    has_timed_out: bool
    watermark_present: bool
    defined: bool
    updated: bool
    removed: bool
    timeout_timestamp: int
    optional_value: None = None


@dataclass
class HandledSlices:
    """The state of a group after the slices of its requests that were handled."""

    stored: StateRow | None


class GroupInput(NamedTuple):
    """A group of a batch as Spark describes it. ``value`` is the pickled state row; None for a new group.

    ``slices`` is None for a group that is handled as a whole, as nearly all are. ``more_follow``: whether this is a
    slice that is not the group's last.
    """

    properties: Properties
    key: bytes
    value: bytes | None
    slices: HandledSlices | None = None
    more_follow: bool = False


class GroupOutput(NamedTuple):
    """The result for a group: the rows of output, and the state in the form that Spark expects.

    ``properties`` is None for a slice that is not the group's last, whose state Spark does not see. ``due_time`` is the
    batch time from which the group must be called, None if only a request can change it.
    """

    rows: list[Row]
    properties: bytes | None
    key: bytes
    value: bytes | None
    old_timeout_timestamp: int
    row_type: Any
    due_time: int | None = None


_properties_decoder = msgspec.json.Decoder(Properties)
_properties_encoder = msgspec.json.Encoder()


def group_function(operator: Any, row_type: Any, _runner_conf: Any) -> Callable[..., GroupOutput]:
    """The function that pyspark's worker calls for each group, with the key's columns and the values' columns."""
    if not isinstance(operator, GroupOperator):
        raise TypeError(f"the Arrow-native worker runs the coordinator's operator only, not {operator!r}")

    def call(key: Sequence[Sequence[str]], values: Iterator[Sequence[Any]], group: GroupInput) -> GroupOutput:
        before = group.properties
        # The first of the values' columns is the key again, as in the query.
        _, *columns = next(values)
        # Spark sends one row of nulls for a group that has timed out.
        records = [] if before.has_timed_out else list(_records(columns))
        slices, batch_time = group.slices, before.batch_processing_time_ms
        stored = _stored(group.value) if slices is None else slices.stored
        outcome = operator.outcome(key[0][0], records, stored, batch_time, more_follow=group.more_follow)
        if slices is not None and group.more_follow:
            slices.stored = outcome.state
            return GroupOutput(outcome.rows, None, group.key, None, -1, row_type)
        return _output(group, outcome, row_type)

    return call


def _records(columns: Sequence[Sequence[Any]]) -> Iterator[KafkaRecord]:
    return map(KafkaRecord._make, zip(*columns, strict=True))


def _byte_count(chunk: Sequence[Sequence[Any]]) -> int:
    """The size of a chunk's group ids, keys and values: a sender chooses the length of each."""
    group_ids, *_, keys, values = chunk
    return sum([len(each or b"") for column in (group_ids, keys, values) for each in column])


def _in_slices(group: GroupInput, group_id: str, spilled: SpilledRecords) -> Iterator[Any]:
    """Yield the slices of a group like groups; all but the last are marked."""
    handled = HandledSlices(_stored(group.value))
    slices = spilled.slices(SLICE_BYTES)
    records = next(slices)
    while records:
        following = next(slices, [])
        columns = [[group_id] * len(records), *map(list, zip(*records, strict=True))]
        yield ((columns, None),), group._replace(slices=handled, more_follow=bool(following))
        records = following


def _stored(value: bytes | None) -> StateRow | None:
    if value is None:
        return None
    (stored,) = pickle.loads(value)  # noqa: S301 - from our own JVM
    return StateRow.unpacked(bytes(stored))


def _output(group: GroupInput, outcome: Outcome, row_type: Any) -> GroupOutput:
    after = group.properties
    old_timeout_timestamp = after.timeout_timestamp
    value = due = None
    if outcome.state is not None:
        value = pickle.dumps((outcome.state.packed(),), pickle.HIGHEST_PROTOCOL)
        after.defined, after.updated, after.removed = True, True, False
    elif group.value is not None:
        after.defined, after.updated, after.removed = False, False, True
    if outcome.wake_at is not None:
        batch_time = after.batch_processing_time_ms
        after.timeout_timestamp = timeout_of(outcome.wake_at, batch_time)
        due = due_time(after.timeout_timestamp, batch_time)
    properties = _properties_encoder.encode(after)
    return GroupOutput(outcome.rows, properties, group.key, value, old_timeout_timestamp, row_type, due)


class ColumnSerializer(ApplyInPandasWithStateSerializer):
    """Reads groups as slices of columns; writes the rows and states of many groups as one record batch."""

    def load_stream(self, stream: IO[bytes]) -> Iterator[Any]:
        """Yield each group in the form that pyspark's worker expects: (its chunks as (columns, None), its state)."""
        group: GroupInput | None = None
        collected: list[list[Any]] = []
        spilled: SpilledRecords | None = None
        size = 0
        for batch in ArrowStreamSerializer.load_stream(self, stream):
            *data, states = batch.columns
            columns = [_values(column) for column in data]
            for properties, key, value, start, count, is_last_chunk in _states(states):
                chunk = [column[start : start + count] for column in columns]
                if group is None:
                    group = GroupInput(_properties_decoder.decode(properties), key, value)
                    collected = chunk
                else:
                    collected = [[*column, *more] for column, more in zip(collected, chunk, strict=True)]
                if not is_last_chunk:
                    size += _byte_count(chunk)
                if size > SLICE_BYTES:
                    spilled = spilled or SpilledRecords()
                    spilled.add(_records(collected[1:]))
                    group_ids, *others = collected
                    collected, size = [group_ids[:1], *([] for _ in others)], 0
                if is_last_chunk:
                    if spilled is None:
                        yield ((collected, None),), group
                    else:
                        spilled.add(_records(collected[1:]))
                        yield from _in_slices(group, collected[0][0], spilled)
                    group, spilled, size = None, None, 0

    def dump_stream(self, iterator: Iterable[GroupOutput], stream: IO[bytes]) -> Any:
        """Write the results of all groups."""
        batches = self._write_stream_start(self._batches(iterator), stream)
        return ArrowStreamSerializer.dump_stream(self, batches, stream)

    def _batches(self, outputs: Iterable[GroupOutput]) -> Iterator[pa.RecordBatch]:
        collected: list[GroupOutput] = []
        rows = size = 0
        for output in outputs:
            collected.append(output)
            rows += len(output.rows)
            size += len(output.value or b"") + sum(len(row.key or b"") + len(row.value or b"") for row in output.rows)
            if rows > self.arrow_max_records_per_batch or size > MAX_BATCH_BYTES:
                yield self._batch(collected)
                collected, rows, size = [], 0, 0
        if collected:
            yield self._batch(collected)

    def _batch(self, outputs: list[GroupOutput]) -> pa.RecordBatch:
        due_times = [output.due_time for output in outputs if output.due_time is not None]
        columns = output_columns([row for output in outputs for row in output.rows], due_times)
        rows = len(columns[0])
        states = [
            (output.properties, output.key, output.value, output.old_timeout_timestamp)
            for output in outputs
            if output.properties is not None
        ]
        state_columns = zip(*states, strict=True) if states else [()] * OUTPUT_STATE_FIELDS
        length = max(rows, len(states))
        row_type = to_arrow_type(outputs[0].row_type, timezone="UTC", prefers_large_types=self._prefers_large_types)
        counts = [(rows, len(states))]
        return pa.RecordBatch.from_arrays(
            [
                _structs(self.result_count_pdf_arrow_type, zip(*counts * length, strict=True), length),
                _structs(row_type, columns, length),
                _structs(self.result_state_pdf_arrow_type, state_columns, length),
            ],
            names=["_0", "_1", "_2"],
        )


def _states(states: pa.StructArray) -> Iterator[tuple[Any, ...]]:
    """The struct of each group; nulls fill the column after the last one."""
    count = len(states) - states.null_count
    return zip(*(_values(states.field(name).slice(0, count)) for name in STATE_FIELDS), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """A column as a list. A null is None; in a column of integers it is 0, because no record has such a null."""
    if column.null_count and pa.types.is_integer(column.type):
        column = column.fill_null(0)
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return values


def _structs(arrow_type: pa.StructType, columns: Iterable[Sequence[Any]], length: int) -> pa.StructArray:
    """Columns as one column of structs, with nulls up to ``length``."""
    arrays = []
    for column, field in zip(columns, arrow_type, strict=True):
        padding = [None] * (length - len(column))
        arrays.append(pa.array([*column, *padding], type=field.type))
    return pa.StructArray.from_arrays(arrays, fields=list(arrow_type))
