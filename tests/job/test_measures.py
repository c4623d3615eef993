"""Totals of measures: exact, and readable as the Spark type that they travel as."""

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from streaming.job import measures
from streaming.job.measures import AnsweredRequest, Increment, RejectedRecord, Totals
from streaming.job.operator import OUTPUT_SCHEMA, output_columns
from streaming.job.rows import Row

HEARTBEAT = AnsweredRequest("Heartbeat", 0, 120)
MEASURES = [
    HEARTBEAT,
    None,
    AnsweredRequest("Heartbeat", 27, 120),
    RejectedRecord("json"),
    Increment("offsets_committed", 3),
    HEARTBEAT,
    Increment("offsets_committed", 4),
    Increment("rebalances_completed", 1),
    RejectedRecord("json"),
    Increment("offsets_committed", 3),
]
TOTALS = Totals([("Heartbeat", 0, 120, 2), ("Heartbeat", 27, 120, 1)], [("json", 2)], 1, 10, 0, 0)


def test_equal_measures_are_counted_and_amounts_added() -> None:
    assert measures.totals(MEASURES) == TOTALS


def test_rows_without_a_measure_have_no_totals() -> None:
    assert measures.totals([None, None]) is None
    assert measures.totals([]) is None


@pytest.mark.parametrize(
    ("waited_ms", "kept_ms"),
    [(-5, -5), (-1_234, -1_230), (7, 7), (999, 999), (1_000, 1_000), (1_234, 1_230), (98_765, 98_800)],
)
def test_a_wait_is_exact_up_to_a_second_and_keeps_three_digits_beyond(waited_ms: int, kept_ms: int) -> None:
    assert measures.of_response("Heartbeat", 0, waited_ms) == AnsweredRequest("Heartbeat", 0, kept_ms)


def test_the_first_row_carries_the_totals_of_all_rows_in_sparks_type() -> None:
    rows = [Row("responses", number, b"key", b"value", measure) for number, measure in enumerate(MEASURES)]
    *_, carried = output_columns(rows)
    arrow_type = to_arrow_type(measures.TOTALS_TYPE, timezone="UTC")
    first, *others = pa.array(carried, type=arrow_type).to_pylist()
    assert [(each["api"], each["error_code"], each["waited_ms"], each["count"]) for each in first.pop("requests")] == [
        ("Heartbeat", 0, 120, 2),
        ("Heartbeat", 27, 120, 1),
    ]
    assert first == {
        "rejects": [{"cause": "json", "count": 2}],
        "rebalances_completed": 1,
        "offsets_committed": 10,
        "offsets_deleted": 0,
        "offsets_expired": 0,
    }
    assert others == [None] * (len(MEASURES) - 1)


def test_no_rows_are_empty_columns() -> None:
    assert output_columns([]) == [()] * len(OUTPUT_SCHEMA)
