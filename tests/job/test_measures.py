"""Totals of measures: exact, also after their way through Spark."""

import pytest

from streaming.job import measures
from streaming.job.measures import (
    AnsweredRequest,
    Increment,
    MovedBack,
    RejectCount,
    RejectedRecord,
    RequestCount,
    Totals,
)
from streaming.job.operator import OUTPUT_SCHEMA, output_columns
from streaming.job.rows.records import Row

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
    MovedBack("commit", 2, 5),
    MovedBack("reset", 1, 1),
    MovedBack("commit", 2, 5),
]
TOTALS = Totals(
    [RequestCount("Heartbeat", 0, 120, 2), RequestCount("Heartbeat", 27, 120, 1)],
    [RejectCount("json", 2)],
    rebalances_completed=1,
    offsets_committed=21,
    offsets_moved_back={"commit": 4, "reset": 1},
)


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


def test_the_first_row_carries_the_totals_of_all_rows() -> None:
    rows = [Row("responses", number, b"key", b"value", measure) for number, measure in enumerate(MEASURES)]
    *_, (first, *others) = output_columns(rows)
    assert Totals.decoded(first) == TOTALS
    assert others == [None] * (len(MEASURES) - 1)


def test_the_first_row_carries_the_due_times_in_order_and_once() -> None:
    rows = [Row("responses", number, b"key", b"value", None) for number in range(2)]
    *_, (first, other) = output_columns(rows, [30, 10, 30, 20])
    assert Totals.decoded(first) == Totals(due_times=[10, 20, 30])
    assert other is None


def test_due_times_without_a_row_are_in_a_row_without_a_topic() -> None:
    columns = output_columns([], [10])
    assert [len(column) for column in columns] == [1] * len(OUTPUT_SCHEMA)
    topic, *_, totals = (column[0] for column in columns)
    assert topic is None
    assert Totals.decoded(totals) == Totals(due_times=[10])


def test_no_rows_are_empty_columns() -> None:
    assert output_columns([]) == [()] * len(OUTPUT_SCHEMA)
