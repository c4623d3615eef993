"""Both workers on the same bytes from Spark: what pyspark's own makes of them, the Arrow-native one makes, too."""

import io
import json
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql.pandas.serializers import ApplyInPandasWithStateSerializer
from pyspark.sql.types import BinaryType, DataType, IntegerType, LongType, StringType, StructField, StructType
from pyspark.worker import wrap_grouped_map_pandas_udf_with_state

from coordinator_logic.config import CoordinatorConfig
from streaming import arrow_worker
from streaming.arrow_worker import ColumnSerializer
from streaming.operator import OUTPUT_SCHEMA, STATE_SCHEMA, GroupOperator, Settings, StateRow
from streaming.topics import TopicNames
from streaming.wire import KafkaRecord
from tests.streaming.kafka_io import commit, dumped, envelope

NOW = 1_700_000_000_000
OPERATOR = GroupOperator(
    Settings(TopicNames(), response_partitions=4, config=CoordinatorConfig(group_initial_rebalance_delay_ms=0))
)
KEY_COLUMNS, VALUE_COLUMNS = [0], range(6)
DATA = pa.schema(
    [
        ("groupId", pa.string()),
        ("timestamp", pa.int64()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
STATE = pa.struct(
    [
        ("properties", pa.string()),
        ("keyRowAsUnsafe", pa.binary()),
        ("object", pa.binary()),
        ("startOffset", pa.int32()),
        ("numRows", pa.int32()),
        ("isLastChunk", pa.bool_()),
    ]
)


TYPES: dict[str, DataType] = {
    "string": StringType(),
    "int": IntegerType(),
    "long": LongType(),
    "binary": BinaryType(),
}


class Touched(NamedTuple):
    """A group in a batch, as Spark sees it; no chunks: it has timed out."""

    group_id: str
    chunks: list[list[KafkaRecord]]
    stored: StateRow | None = None


class Sent(NamedTuple):
    """What a worker sends back: the rows of all groups, and (properties, key, state, old timeout) of each."""

    rows: list[dict[str, Any]]
    states: list[tuple[dict[str, Any], bytes, tuple[Any, ...] | None, int]]


def struct_type(ddl: str) -> StructType:
    """What Spark makes of the schema; its own parser is in the JVM."""
    fields = (column.split() for column in ddl.split(", "))
    return StructType([StructField(name, TYPES[kind]) for name, kind in fields])


def properties(touched: Touched) -> str:
    return json.dumps(
        {
            "batchProcessingTimeMs": NOW + 100,
            "eventTimeWatermarkMs": -1,
            "timeoutConf": "ProcessingTimeTimeout",
            "hasTimedOut": not touched.chunks,
            "watermarkPresent": False,
            "defined": touched.stored is not None,
            "updated": False,
            "removed": False,
            "timeoutTimestamp": -1,
        }
    )


def from_spark(groups: list[Touched]) -> bytes:
    """The record batches that Spark would send: one a round of chunks, so that groups go on in the next batch."""
    rounds: list[tuple[list[tuple[Any, ...]], list[dict[str, Any] | None]]] = [([], [])]
    for touched in groups:
        chunks: list[list[tuple[Any, ...]]] = [
            [(touched.group_id, *record) for record in chunk] for chunk in touched.chunks
        ] or [[(touched.group_id, None, None, None, None, None)]]
        value = None if touched.stored is None else pickle.dumps((touched.stored.packed(),))
        for index, chunk in enumerate(chunks):
            if index:
                rounds.append(([], []))
            rows, states = rounds[-1]
            states.append(
                {
                    "properties": properties(touched),
                    "keyRowAsUnsafe": touched.group_id.encode(),
                    "object": value,
                    "startOffset": len(rows),
                    "numRows": len(chunk),
                    "isLastChunk": index == len(chunks) - 1,
                }
            )
            rows.extend(chunk)
    stream = io.BytesIO()
    schema = DATA.append(pa.field("state", STATE))
    with pa.ipc.new_stream(stream, schema) as writer:
        for rows, states in rounds:
            columns: list[pa.Array] = [
                pa.array([row[i] for row in rows], type=field.type) for i, field in enumerate(DATA)
            ]
            padded = [*states, *[None] * (len(rows) - len(states))]
            writer.write_batch(pa.RecordBatch.from_arrays([*columns, pa.array(padded, type=STATE)], schema=schema))
    return stream.getvalue()


def worked(serializer: type, wrap: Any, sent: bytes, records_per_batch: int) -> Sent:
    """A worker's whole way from Spark's bytes to its own; the part in the middle is what pyspark's worker does."""
    instance = serializer(
        timezone="UTC",
        safecheck=True,
        assign_cols_by_name=True,
        prefer_int_ext_dtype=False,
        state_object_schema=struct_type(STATE_SCHEMA),
        arrow_max_records_per_batch=records_per_batch,
        prefers_large_var_types=False,
        int_to_decimal_coercion_enabled=False,
    )
    function = wrap(OPERATOR, struct_type(OUTPUT_SCHEMA), None)

    def called() -> Iterator[Any]:
        for chunks, state in instance.load_stream(io.BytesIO(sent)):
            columns = (chunk[0] for chunk in chunks)
            first = next(columns)
            picked = ([chunk[i] for i in VALUE_COLUMNS] for chunk in _chain(first, columns))
            yield function([first[i] for i in KEY_COLUMNS], picked, state)

    stream = io.BytesIO()
    instance.dump_stream(called(), stream)
    assert stream.getvalue()[:4] == (-6).to_bytes(4, "big", signed=True), "Spark waits for this before Arrow's stream"
    rows: list[dict[str, Any]] = []
    states: list[tuple[dict[str, Any], bytes, tuple[Any, ...] | None, int]] = []
    for batch in pa.ipc.open_stream(stream.getvalue()[4:]):
        counts, row_column, state_column = (column.to_pylist() for column in batch.columns)
        rows += row_column[: counts[0]["dataCount"]]
        for state in state_column[: counts[0]["stateCount"]]:
            value = None if state["object"] is None else pickle.loads(state["object"])
            told = json.loads(state["properties"])
            states.append((told, state["keyRowAsUnsafe"], value, state["oldTimeoutTimestamp"]))
    return Sent(rows, states)


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def record(group_id: str, offset: int, request: dict[str, Any], timestamp: int = NOW) -> KafkaRecord:
    return KafkaRecord(timestamp, offset % 3, offset, group_id.encode(), dumped(request))


def join(group_id: str, version: int = 3) -> dict[str, Any]:
    body = {
        "groupId": group_id,
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 10_000,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": ""}],
    }
    return envelope("JoinGroup", version, body)


def with_member(group_id: str) -> StateRow:
    stored = OPERATOR.outcome(group_id, [record(group_id, 7, join(group_id))], None, NOW).state
    assert stored is not None
    return stored


def empty(group_id: str) -> StateRow:
    stored = OPERATOR.outcome(group_id, [record(group_id, 7, commit(group_id, 1))], None, NOW).state
    assert stored is not None
    return stored


def deleted(group_id: str) -> KafkaRecord:
    return record(group_id, 8, envelope("DeleteGroups", 2, {"groupsNames": [group_id]}))


BATCHES = {
    "a new group": [Touched("a", [[record("a", 1, join("a"))]])],
    "a group that goes on": [Touched("a", [[record("a", 9, commit("a", 5))]], empty("a"))],
    "a group that has timed out": [Touched("a", [], with_member("a"))],
    "a group that is deleted": [Touched("a", [[deleted("a")]], empty("a"))],
    "nothing but rejects": [Touched("a", [[KafkaRecord(NOW, 0, 1, b"a", None), KafkaRecord(NOW, 0, 2, b"a", b"?")]])],
    "a group in chunks": [
        Touched("a", [[record("a", 3, commit("a", 1)), record("a", 1, commit("a", 2))], [record("a", 2, join("a"))]]),
        Touched("b", [[record("b", 5, join("b", 9))]]),
    ],
    "many groups of all kinds": [
        touched
        for number in range(40)
        for touched in (
            Touched(f"new-{number}", [[record(f"new-{number}", number, join(f"new-{number}", 9))]]),
            Touched(
                f"old-{number}", [[record(f"old-{number}", 50, commit(f"old-{number}", 5))]], empty(f"old-{number}")
            ),
            Touched(f"late-{number}", [], with_member(f"late-{number}")),
        )
    ],
}


@pytest.mark.parametrize("records_per_batch", [10_000, 3])
@pytest.mark.parametrize("groups", BATCHES.values(), ids=BATCHES.keys())
def test_both_workers_send_the_same(groups: list[Touched], records_per_batch: int) -> None:
    sent = from_spark(groups)
    stock = worked(
        ApplyInPandasWithStateSerializer,
        wrap_grouped_map_pandas_udf_with_state,
        sent,
        records_per_batch,
    )
    native = worked(ColumnSerializer, arrow_worker.wrapped, sent, records_per_batch)
    assert native == stock
    assert len(native.states) == len(groups)
