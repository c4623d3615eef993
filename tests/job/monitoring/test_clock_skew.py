"""The difference of the clocks, as the batches prove it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from streaming.job.measures import RequestCount, Totals
from streaming.job.monitoring.clock_skew import ClockComparison, SkewReport
from streaming.job.monitoring.metrics import Metrics, Observed, Progress

START = datetime(2026, 1, 1, tzinfo=UTC)


def second_batch(waits: Sequence[int], *, after_ms: int = 500, unread: int = 0) -> int | None:
    """The skew that a batch proves which is planned so long after another, which left so many requests unread."""
    clocks = ClockComparison()
    clocks.skew_ms(1, START, [100], unread)
    return clocks.skew_ms(2, START + timedelta(milliseconds=after_ms), waits, 0)


@pytest.mark.parametrize(
    ("waits", "skew_ms"),
    [([0, 500], 0), ([-200, 700], 0), ([-60_000, 100], 60_000), ([3_600_000], -3_599_500), ([], None)],
)
def test_an_append_time_outside_of_its_batch_proves_that_the_clocks_differ(waits: list[int], skew_ms: int) -> None:
    assert second_batch(waits) == skew_ms


def test_a_long_wait_proves_nothing_after_a_pause_a_start_or_behind_a_backlog() -> None:
    assert second_batch([60_000], after_ms=60_000) == 0
    assert second_batch([60_000], unread=1) == 0
    assert ClockComparison().skew_ms(7, START, [60_000], 0) == 0


def test_the_gauge_shows_the_skew_and_ignores_parked_requests() -> None:
    metrics = Metrics()
    requests = [RequestCount("Heartbeat", 0, -60_000, 1), RequestCount("JoinGroup", 0, 300_000, 1)]
    totals = Totals(requests).encoded()
    metrics.count_batch(Progress(1, {}, observed_metrics={"measures": Observed([totals])}, timestamp=START))
    assert metrics.registry.get_sample_value("group_coordinator_clock_skew_seconds") == 60


def test_clocks_that_begin_to_differ_are_reported_once_and_so_is_their_return() -> None:
    lines: list[str] = []
    clocks = SkewReport(lines.append)
    for skew_seconds in (0.0, 4.0, -60.0, -60.5, 0.0, 0.0, 3_600.0):
        clocks.update(skew_seconds)
    assert [line.partition(";")[0] for line in lines] == [
        "warning: the brokers' clocks are 60.0 s behind the driver's",
        "the clocks of the brokers and the driver agree again",
        "warning: the brokers' clocks are 3,600.0 s ahead of the driver's",
    ]
