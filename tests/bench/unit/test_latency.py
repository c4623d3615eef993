"""The statistics of the benchmark, which decide whether a goal is met."""

import pytest

from tests.bench.latency import percentile, schedule, summary


def test_a_percentile_is_a_value_that_occurred() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [percentile(values, percent) for percent in (1, 50, 99, 100)] == [1.0, 50.0, 99.0, 100.0]
    assert percentile([7.0], 99) == 7.0
    assert percentile([1.0, 2.0], 50) == 1.0
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_a_summary_turns_seconds_into_milliseconds() -> None:
    latency = summary([0.001, 0.002, 0.5])
    assert (latency.count, latency.p50_ms, latency.p99_ms, latency.max_ms) == (3, 2.0, 500.0, 500.0)
    assert summary([]).count == 0


def test_a_schedule_has_one_time_in_each_interval_and_is_the_same_every_time() -> None:
    times = schedule(rate=50, seconds=2)
    assert [int(moment * 50) for moment in times] == list(range(100))
    assert len({round(moment * 50 % 1, 6) for moment in times}) > 90
    assert times == schedule(rate=50, seconds=2)
