"""Both Python workers on the same bytes from Spark: they send the same rows and states back."""

import io
import json
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, NamedTuple, get_args

import pyarrow as pa
import pytest
from pyspark.sql.pandas.serializers import ApplyInPandasWithStateSerializer
from pyspark.sql.types import BinaryType, StructType
from pyspark.worker import wrap_grouped_map_pandas_udf_with_state

from coordinator_logic.config import CoordinatorConfig
from streaming.contract.topics import TopicNames
from streaming.job.due_times import due_time
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.measures import CounterName, Totals
from streaming.job.operator import OUTPUT_SCHEMA, STATE_SCHEMA, GroupOperator
from streaming.job.rows.records import KafkaRecord
from streaming.job.spark_internals.python_worker import arrow_worker
from streaming.job.spark_internals.python_worker.arrow_worker import ColumnSerializer
from streaming.job.spilled_records import SpilledRecords
from tests.support.request_events import commit, dumped, envelope

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


class BatchGroup(NamedTuple):
    """A group of a batch as Spark sends it. It has no chunks when it has timed out."""

    group_id: str
    chunks: list[list[KafkaRecord]]
    stored: StateRow | None = None


class Sent(NamedTuple):
    """What a worker sends to Spark: the rows of all groups, and (properties, key, state, old timeout) of each group."""

    rows: list[dict[str, Any]]
    states: list[tuple[dict[str, Any], bytes, tuple[Any, ...] | None, int]]


def properties(each: BatchGroup) -> str:
    return json.dumps(
        {
            "batchProcessingTimeMs": NOW + 100,
            "eventTimeWatermarkMs": -1,
            "timeoutConf": "ProcessingTimeTimeout",
            "hasTimedOut": not each.chunks,
            "watermarkPresent": False,
            "defined": each.stored is not None,
            "updated": False,
            "removed": False,
            "timeoutTimestamp": -1,
        }
    )


def spark_batches(groups: list[BatchGroup]) -> bytes:
    """The record batches that Spark sends: one for each round of chunks, so that groups continue in the next batch."""
    rounds: list[tuple[list[tuple[Any, ...]], list[dict[str, Any] | None]]] = [([], [])]
    for each in groups:
        chunks: list[list[tuple[Any, ...]]] = [
            [(each.group_id, *record) for record in chunk] for chunk in each.chunks
        ] or [[(each.group_id, *[None] * len(KafkaRecord._fields))]]
        value = None if each.stored is None else pickle.dumps((each.stored.packed(),))
        for index, chunk in enumerate(chunks):
            if index:
                rounds.append(([], []))
            rows, states = rounds[-1]
            states.append(
                {
                    "properties": properties(each),
                    "keyRowAsUnsafe": each.group_id.encode(),
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


def run_worker(serializer: type, wrap: Any, sent: bytes, records_per_batch: int) -> Sent:
    """Run a worker from Spark's bytes to its own; the part in the middle is a copy of what pyspark's worker does."""
    instance = serializer(
        timezone="UTC",
        safecheck=True,
        assign_cols_by_name=True,
        prefer_int_ext_dtype=False,
        state_object_schema=StructType().add(STATE_SCHEMA.partition(" ")[0], BinaryType()),
        arrow_max_records_per_batch=records_per_batch,
        prefers_large_var_types=False,
        int_to_decimal_coercion_enabled=False,
    )
    function = wrap(OPERATOR, OUTPUT_SCHEMA, None)

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
            sent_properties = json.loads(state["properties"])
            states.append((sent_properties, state["keyRowAsUnsafe"], value, state["oldTimeoutTimestamp"]))
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


def summed_measures(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Take the measures out of the rows, and the rows that have nothing else, and add them up.

    They are counts of requests and rejects, the other totals, and due times.
    """
    summed: Counter[tuple[Any, ...]] = Counter()
    for totals in map(Totals.decoded, filter(None, [row.pop("measures") for row in rows])):
        for request in totals.requests:
            summed[request.api, request.error_code, request.waited_ms] += request.count
        for reject in totals.rejects:
            summed[(reject.cause,)] += reject.count
        summed.update({(name,): getattr(totals, name) for name in get_args(CounterName)})
        summed |= Counter({("due", due): 1 for due in totals.due_times})
    rows[:] = [row for row in rows if row["topic"] is not None]
    return summed


BATCHES = {
    "a new group": [BatchGroup("a", [[record("a", 1, join("a"))]])],
    "a known group": [BatchGroup("a", [[record("a", 9, commit("a", 5))]], empty("a"))],
    "a group that has timed out": [BatchGroup("a", [], with_member("a"))],
    "a group that is deleted": [BatchGroup("a", [[deleted("a")]], empty("a"))],
    "nothing but rejects": [
        BatchGroup("a", [[KafkaRecord(NOW, 0, 1, b"a", None), KafkaRecord(NOW, 0, 2, b"a", b"?")]])
    ],
    "a group in chunks": [
        BatchGroup(
            "a", [[record("a", 3, commit("a", 1)), record("a", 1, commit("a", 2))], [record("a", 2, join("a"))]]
        ),
        BatchGroup("b", [[record("b", 5, join("b", 9))]]),
    ],
    "many groups of all kinds": [
        each
        for number in range(40)
        for each in (
            BatchGroup(f"new-{number}", [[record(f"new-{number}", number, join(f"new-{number}", 9))]]),
            BatchGroup(
                f"old-{number}", [[record(f"old-{number}", 50, commit(f"old-{number}", 5))]], empty(f"old-{number}")
            ),
            BatchGroup(f"late-{number}", [], with_member(f"late-{number}")),
        )
    ],
}


@pytest.mark.parametrize("records_per_batch", [10_000, 3])
@pytest.mark.parametrize("groups", BATCHES.values(), ids=BATCHES.keys())
def test_both_workers_send_the_same(groups: list[BatchGroup], records_per_batch: int) -> None:
    sent = spark_batches(groups)
    stock = run_worker(
        ApplyInPandasWithStateSerializer,
        wrap_grouped_map_pandas_udf_with_state,
        sent,
        records_per_batch,
    )
    native = run_worker(ColumnSerializer, arrow_worker.group_function, sent, records_per_batch)
    # pyspark's worker totals the measures of each group, the native one those of a record batch.
    assert summed_measures(native.rows) == summed_measures(stock.rows)
    assert native == stock
    assert len(native.states) == len(groups)


@pytest.mark.parametrize("worker", ["native", "stock"])
def test_a_group_without_rows_has_its_due_time_sent(worker: str) -> None:
    group = spark_batches([BatchGroup("a", [], with_member("a"))])
    if worker == "native":
        sent = run_worker(ColumnSerializer, arrow_worker.group_function, group, 10_000)
    else:
        sent = run_worker(ApplyInPandasWithStateSerializer, wrap_grouped_map_pandas_udf_with_state, group, 10_000)
    (row,) = sent.rows
    assert row["topic"] is None
    (due,) = Totals.decoded(row["measures"]).due_times
    ((state, *_),) = sent.states
    assert due == due_time(state["timeoutTimestamp"], NOW + 100) > state["timeoutTimestamp"]


class Handled(NamedTuple):
    """A call of the operator: which offsets of a group it got, and whether more of the group follow."""

    group_id: str
    offsets: list[int]
    more_follow: bool


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> list[Handled]:
    """The calls of the operator."""
    calls: list[Handled] = []
    outcome = GroupOperator.outcome

    def noted(
        self: GroupOperator, group_id: str, records: list[KafkaRecord], *rest: Any, more_follow: bool = False
    ) -> Any:
        calls.append(Handled(group_id, [each.offset for each in records], more_follow))
        return outcome(self, group_id, records, *rest, more_follow=more_follow)

    monkeypatch.setattr(GroupOperator, "outcome", noted)
    return calls


@pytest.mark.parametrize("records_per_batch", [10_000, 3])
def test_a_group_with_many_bytes_is_handled_in_slices_in_the_order_of_the_log(
    records_per_batch: int, handled: list[Handled], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a worker never holds more than a slice of it, however large it is and in whatever order Spark delivers it."""
    requests = [record("large", offset, commit("large", offset)) for offset in range(40)]
    requests += [KafkaRecord(NOW, 1, 61, b"large", b"nonsense"), KafkaRecord(NOW, 1, 64, b"large", None)]
    requests.append(record("large", 90, join("large")))
    in_order = [each._replace(timestamp=NOW + each.offset) for each in requests]
    shuffled = Random(1).sample(in_order, len(in_order))
    chunks = [shuffled[first : first + 5] for first in range(0, len(shuffled), 5)]
    small, late = (
        BatchGroup("small", [[record("small", 1, join("small"))]]),
        BatchGroup("late", [], with_member("late")),
    )
    sent = spark_batches([BatchGroup("large", chunks, empty("large")), small, late])
    whole = run_worker(ColumnSerializer, arrow_worker.group_function, sent, records_per_batch)
    handled.clear()
    monkeypatch.setattr(arrow_worker, "SLICE_BYTES", 2_000)
    sliced = run_worker(ColumnSerializer, arrow_worker.group_function, sent, records_per_batch)
    *slices, last, (_, small_offsets, _), (_, late_offsets, _) = handled
    assert len(slices) > 3
    assert max(len(offsets) for _, offsets, _ in handled) < 10
    assert [offset for _, offsets, _ in [*slices, last] for offset in offsets] == [each.offset for each in in_order]
    assert [more_follow for _, _, more_follow in handled] == [*[True] * len(slices), False, False, False]
    assert (small_offsets, late_offsets) == ([1], [])
    assert summed_measures(sliced.rows) == summed_measures(whole.rows)
    # The answers of a slice come before its journal, so only the order within each topic is the same.
    assert sorted(sliced.rows, key=lambda row: row["topic"]) == sorted(whole.rows, key=lambda row: row["topic"])
    assert sliced.states == whole.states


@pytest.mark.parametrize(
    ("group_id", "key"), [("large", b"k" * 500), ("g" * 500, None)], ids=["long keys", "a long group id"]
)
def test_the_bytes_of_keys_and_group_ids_count_for_the_size_of_a_slice(
    group_id: str, key: bytes | None, handled: list[Handled], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender may put all the bytes of its records there."""
    chunks = [[KafkaRecord(NOW, 0, first + i, key, b"?") for i in range(2)] for first in range(0, 40, 2)]
    sent = spark_batches([BatchGroup(group_id, chunks)])
    spilled: list[int] = []
    add = SpilledRecords.add

    def noted(self: SpilledRecords, records: Iterable[KafkaRecord]) -> None:
        batch = list(records)
        spilled.append(len(batch))
        add(self, batch)

    monkeypatch.setattr(SpilledRecords, "add", noted)
    monkeypatch.setattr(arrow_worker, "SLICE_BYTES", 2_000)
    run_worker(ColumnSerializer, arrow_worker.group_function, sent, 10_000)
    assert max(spilled, default=40) <= 6, "so many of its records are in memory at once"
    assert [offset for call in handled for offset in call.offsets] == list(range(40))
