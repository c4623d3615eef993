"""What pyspark's worker does around ``applyInPandasWithState``, in one pass over Arrow columns, without pandas.

pyspark's own makes a pandas frame of every group that a batch touches, another of what the group puts out, and a third
of its state: some hundreds of microseconds a group, most of a worker's time. Here each record batch is converted
to Python lists once, groups are slices of them, and what all groups put out leaves as one record batch.
Spark's operator, its state, its timeouts and its checkpoint do not notice.

The protocol between Spark and its worker is internal; :mod:`streaming.python_worker` says when this is used.

A record batch from Spark holds the columns of the data and, as its last one, a struct per group: the state with its
properties as JSON, and which rows are the group's. One that goes back holds three structs of equal length: how many
rows of the others count, the rows put out, and the states.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import IO, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyspark.sql.types
import pyspark.worker
from pyspark.sql.pandas.serializers import ApplyInPandasWithStateSerializer, ArrowStreamSerializer
from pyspark.sql.pandas.types import to_arrow_type

from streaming.operator import GroupOperator, Outcome, StateRow
from streaming.wire import KafkaRecord, Row

MAX_BATCH_BYTES = 64 * 1024 * 1024
"""When a record batch that goes back is full: its offsets are 32 bits, and one group's state may be this large."""

FIELDS_OF_A_STATE = ("properties", "keyRowAsUnsafe", "object", "startOffset", "numRows", "isLastChunk")


def install() -> None:
    """Put this module's functions in the place of pyspark's."""
    worker: Any = pyspark.worker
    worker.ApplyInPandasWithStateSerializer = ColumnSerializer
    worker.wrap_grouped_map_pandas_udf_with_state = wrapped
    # Every task tells its schemas anew, as JSON, and Spark pickles the state of every group as a call that parses its
    # schema and makes a Row: a third of what a heartbeat took in a worker.
    types: Any = pyspark.sql.types
    parse = lru_cache(types._parse_datatype_json_string)
    worker._parse_datatype_json_string = types._parse_datatype_json_string = parse
    types._create_row_inbound_converter = lambda _schema: _as_they_are
    guard = worker.fail_on_stopiteration
    # It would hide the operator behind a function; and the operator lets no exception out.
    worker.fail_on_stopiteration = lambda function: function if isinstance(function, GroupOperator) else guard(function)


def _as_they_are(*values: Any) -> tuple[Any, ...]:
    return values


class Properties(msgspec.Struct, rename="camel"):
    """A group's state as Spark tells it, less the value. Times are ms since the epoch."""

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


class GroupInput(NamedTuple):
    """A group in a batch: what Spark knows of it. ``value`` is the pickled state row, if there is one."""

    properties: Properties
    key: bytes
    value: bytes | None


class GroupOutput(NamedTuple):
    """What became of a group: its rows, and its state as Spark wants it back."""

    rows: list[Row]
    properties: bytes
    key: bytes
    value: bytes | None
    old_timeout_timestamp: int
    row_type: Any


_properties_decoder = msgspec.json.Decoder(Properties)
_properties_encoder = msgspec.json.Encoder()


def wrapped(operator: Any, row_type: Any, _runner_conf: Any) -> Callable[..., GroupOutput]:
    """The function that pyspark's worker calls for each group, with the columns that it has picked for it."""
    if not isinstance(operator, GroupOperator):
        raise TypeError(f"the Arrow-native worker runs the coordinator's operator only, not {operator!r}")

    def call(key: Sequence[Sequence[str]], values: Iterator[Sequence[Any]], group: GroupInput) -> GroupOutput:
        before = group.properties
        # What the group is grouped by is among the values, too: first, as in the query.
        _, *columns = next(values)
        # A group that has timed out comes with one row, of nulls.
        records = [] if before.has_timed_out else list(map(KafkaRecord._make, zip(*columns, strict=True)))
        stored = None if group.value is None else _unpickled(group.value)
        outcome = operator.outcome(key[0][0], records, stored, before.batch_processing_time_ms)
        return _output(group, outcome, stored, row_type)

    return call


def _unpickled(value: bytes) -> StateRow:
    (stored,) = pickle.loads(value)  # noqa: S301 - from our own JVM
    return StateRow.unpacked(bytes(stored))


def _output(group: GroupInput, outcome: Outcome, stored: StateRow | None, row_type: Any) -> GroupOutput:
    after = group.properties
    old_timeout_timestamp = after.timeout_timestamp
    value = None
    if outcome.state is not None:
        value = pickle.dumps((outcome.state.packed(),), pickle.HIGHEST_PROTOCOL)
        after.defined, after.updated, after.removed = True, True, False
    elif stored is not None:
        after.defined, after.updated, after.removed = False, False, True
    if outcome.wake_at is not None:
        after.timeout_timestamp = max(outcome.wake_at, after.batch_processing_time_ms + 1)
    properties = _properties_encoder.encode(after)
    return GroupOutput(outcome.rows, properties, group.key, value, old_timeout_timestamp, row_type)


class ColumnSerializer(ApplyInPandasWithStateSerializer):
    """Reads groups as slices of columns, and writes their rows and states by the batch."""

    def load_stream(self, stream: IO[bytes]) -> Iterator[Any]:
        """Every group as pyspark's worker wants it: (its chunks, each with its columns first; its state)."""
        group: GroupInput | None = None
        collected: list[list[Any]] = []
        for batch in ArrowStreamSerializer.load_stream(self, stream):
            *data, states = batch.columns
            columns = [_values(column) for column in data]
            for properties, key, value, start, count, is_last_chunk in _states(states):
                chunk = [column[start : start + count] for column in columns]
                if group is None:
                    group = GroupInput(_properties_decoder.decode(properties), key, value)
                    collected = chunk
                else:
                    collected = [[*before, *more] for before, more in zip(collected, chunk, strict=True)]
                if is_last_chunk:
                    yield ((collected, None),), group
                    group = None

    def dump_stream(self, iterator: Iterable[GroupOutput], stream: IO[bytes]) -> Any:
        """Write what became of every group."""
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
        rows = [row for output in outputs for row in output.rows]
        states = [(output.properties, output.key, output.value, output.old_timeout_timestamp) for output in outputs]
        length = max(len(rows), len(states))
        row_type = to_arrow_type(outputs[0].row_type, timezone="UTC", prefers_large_types=self._prefers_large_types)
        counts = [(len(rows), len(states))]
        return pa.RecordBatch.from_arrays(
            [
                _structs(self.result_count_pdf_arrow_type, counts * length, length),
                _structs(row_type, rows, length),
                _structs(self.result_state_pdf_arrow_type, states, length),
            ],
            names=["_0", "_1", "_2"],
        )


def _states(states: pa.StructArray) -> Iterator[tuple[Any, ...]]:
    """The struct of every group; what follows the last one only fills the column up."""
    count = len(states) - states.null_count
    return zip(*(_values(states.field(name).slice(0, count)) for name in FIELDS_OF_A_STATE), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """A column as a list. Nulls stay None where they can mean something; a missing number belongs to no record."""
    if column.null_count and pa.types.is_integer(column.type):
        column = column.fill_null(0)
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return values


def _structs(arrow_type: pa.StructType, values: Sequence[tuple[Any, ...]], length: int) -> pa.StructArray:
    """Tuples as a column of structs, filled up with nulls."""
    padding = [None] * (length - len(values))
    columns = zip(*values, strict=True) if values else [()] * arrow_type.num_fields
    arrays = [pa.array([*column, *padding], type=field.type) for column, field in zip(columns, arrow_type, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(arrow_type))
