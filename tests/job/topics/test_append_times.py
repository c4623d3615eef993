"""What the newest append times of a topic prove about the clocks."""

import pytest

from streaming.job.topics.append_times import AppendTimeComparison, NewestAppend

START = 1_700_000_000_000
POLL_MS = 1_000
HOUR_MS = 3_600_000


class Polled:
    """A comparison that is polled each second of the driver's clock; a poll takes no time."""

    def __init__(self) -> None:
        self.clocks = AppendTimeComparison()
        self.now = START

    def poll(self, *partitions: tuple[int, int]) -> float:
        """The skew (s) after a poll that finds these partitions: the latest append time (ms since START), the end."""
        found = {number: NewestAppend(START + time_ms, end) for number, (time_ms, end) in enumerate(partitions)}
        self.clocks.update(found, self.now, self.now)
        self.now += POLL_MS
        return self.clocks.skew_seconds


@pytest.mark.parametrize(
    ("before", "after", "skew_seconds"),
    [
        pytest.param((-100, 1), (500, 2), 0, id="the clocks agree"),
        pytest.param((-HOUR_MS, 1), (500, 9), 0, id="after a long pause"),
        pytest.param((HOUR_MS - 500, 1), (HOUR_MS + 500, 2), 3_599.5, id="ahead"),
        pytest.param((-HOUR_MS - 500, 1), (-HOUR_MS + 500, 2), -3_599.5, id="behind"),
        pytest.param((-60_000, 1), (-60_000, 2), -60, id="went back, and appends since then are not the latest"),
        pytest.param((HOUR_MS, 1), (HOUR_MS, 2), 0, id="was ahead and has returned"),
        pytest.param((-HOUR_MS, 2), (-HOUR_MS, 2), 0, id="no new record"),
        pytest.param((-100, 9), (-HOUR_MS, 9), 0, id="retention has deleted the latest record"),
    ],
)
def test_records_that_are_new_prove_the_least_difference_of_the_clocks(
    before: tuple[int, int], after: tuple[int, int], skew_seconds: float
) -> None:
    polled = Polled()
    assert polled.poll(before) == 0
    assert polled.poll(after) == skew_seconds


def test_a_difference_holds_until_new_records_show_another_one() -> None:
    polled = Polled()
    polled.poll((-HOUR_MS, 1))
    assert polled.poll((-HOUR_MS + 900, 2)) == -3_599.1
    assert polled.poll((-HOUR_MS + 900, 2)) == -3_599.1
    assert polled.poll((2_500, 3)) == 0


def test_the_partition_with_the_largest_difference_counts() -> None:
    polled = Polled()
    polled.poll((-HOUR_MS, 1), (-100, 1))
    assert polled.poll((-HOUR_MS, 1), (61_000, 2)) == 60
    assert polled.poll((-HOUR_MS + 2_000, 2), (61_000, 2)) == -3_599
    assert polled.poll((2_500, 3), (61_000, 2)) == 60
