"""When a wake event is appended: decided by the schedule alone, and in a small world that loses some of them."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.job.due_times import STEPS, due_time
from streaming.job.wake_events.schedule import (
    FAILED_SECONDS,
    FIRST_REGULAR_SECONDS,
    LAST_REGULAR_SECONDS,
    LATE_PART,
    UNREAD_SECONDS,
    CompletedBatch,
    WakeSchedule,
)
from tests.support.properties import examples

START = 1_700_000_000_000
INTERVAL_SECONDS = 0.45
REPEAT_SECONDS = UNREAD_SECONDS + 2 * INTERVAL_SECONDS


@dataclass
class Driven:
    """A schedule whose clocks a test sets: both show the same time, in ms and in seconds."""

    is_new: bool = True
    now: int = START
    batches: int = 0
    end: int = 0

    def __post_init__(self) -> None:
        self.schedule = WakeSchedule(self.seconds, INTERVAL_SECONDS, is_new=self.is_new)

    @property
    def seconds(self) -> float:
        return (self.now - START) / 1000

    def batch(
        self, *due_times: int, time: int | None = None, is_new_time: bool = True, are_reported: bool = True
    ) -> None:
        """Complete a batch of this time, by default now, which reads all records."""
        known_time = (self.now if time is None else time) if is_new_time else None
        completed = CompletedBatch(self.batches, known_time, due_times if are_reported else None, {0: self.end})
        self.schedule.note_batch(completed, self.seconds)
        self.batches += 1

    def asks(self) -> bool:
        """Whether a wake event is appended now."""
        if not self.schedule.is_needed(self.now, self.seconds):
            return False
        self.schedule.note_asked(self.seconds)
        return True

    def append(self) -> None:
        """The broker has the wake event."""
        self.schedule.note_appended(0, self.end)
        self.end += 1


def test_a_new_job_without_groups_appends_nothing() -> None:
    driven = Driven()
    driven.batch()
    driven.now += 100_000_000
    assert not driven.asks()
    assert driven.schedule.seconds_until_due(driven.now) is None


def test_a_group_that_is_due_is_woken_once() -> None:
    driven = Driven()
    driven.batch(START + 6_000)
    driven.now = START + 5_999
    assert not driven.asks()
    assert driven.schedule.seconds_until_due(driven.now) == pytest.approx(0.001)
    driven.now += 1
    assert driven.asks()
    driven.append()
    assert not driven.asks()
    driven.now += 300
    driven.batch()
    driven.now += 100_000_000
    assert not driven.asks()


def test_a_batch_that_runs_for_another_reason_spares_the_wake_event() -> None:
    driven = Driven()
    driven.batch(START + 6_000, START + 6_010, START + 9_000)
    driven.now = START + 8_000
    driven.batch(START + 9_000)
    assert not driven.asks()
    driven.now = START + 9_000
    assert driven.asks()


def test_a_batch_that_was_planned_before_the_due_time_does_not_count() -> None:
    driven = Driven()
    driven.batch(START + 6_000)
    driven.now = START + 6_500
    driven.batch(time=START + 5_999)
    assert driven.asks()


def test_a_batch_that_runs_again_has_called_nobody_since() -> None:
    driven = Driven()
    driven.batch(START + 6_000)
    driven.now = START + 7_000
    driven.batch(is_new_time=False)
    assert driven.asks()


def test_a_wake_event_that_no_batch_reads_is_repeated() -> None:
    driven = Driven()
    driven.batch(START + 1_000)
    driven.now = START + 1_000
    assert driven.asks()
    driven.now += int(REPEAT_SECONDS * 1000)
    assert driven.asks()
    driven.append()
    # The batch before it has not read it.
    driven.schedule.note_batch(CompletedBatch(1, START + 999, (), {0: 0}), driven.seconds)
    driven.batches = 2
    assert not driven.asks()
    driven.now += int(REPEAT_SECONDS * 1000)
    assert driven.asks()
    driven.append()
    driven.batch()
    driven.now += 100_000
    assert not driven.asks()


def test_a_wake_event_that_cannot_be_appended_is_repeated_soon() -> None:
    driven = Driven()
    driven.batch(START + 1_000)
    driven.now = START + 1_000
    assert driven.asks()
    driven.schedule.note_failed(driven.seconds)
    assert not driven.asks()
    driven.now += int(FAILED_SECONDS * 1000)
    assert driven.asks()


def test_a_wake_event_that_was_read_before_its_place_was_known_is_not_awaited() -> None:
    driven = Driven()
    driven.batch(START + 1_000)
    driven.now = START + 1_000
    assert driven.asks()
    driven.end = 1
    driven.batch(START + 1_100)
    driven.schedule.note_appended(0, 0)
    driven.now += 100
    assert driven.asks()


def regular_wakes(driven: Driven, until_seconds: float) -> Iterable[float]:
    """The times (s) of the wake events, each of which a batch reads at once."""
    while driven.seconds < until_seconds:
        driven.now += 100
        if driven.asks():
            yield driven.seconds
            driven.append()
            driven.batch()


def test_after_a_start_with_groups_wake_events_come_regularly_and_ever_less_often() -> None:
    driven = Driven(is_new=False)
    driven.batch()
    times = [0.0, *regular_wakes(driven, 100_000)]
    for before, after in pairwise(times):
        assert after - before <= max(FIRST_REGULAR_SECONDS, before / LATE_PART) + 0.2
        assert after - before <= LAST_REGULAR_SECONDS + 0.2
    assert len([time for time in times if time < 60]) <= 40
    assert len([time for time in times if time < 3_600]) <= 100
    assert times[-1] - times[-2] == pytest.approx(LAST_REGULAR_SECONDS, abs=0.2)


def test_a_job_with_traffic_appends_no_regular_wake_events() -> None:
    driven = Driven(is_new=False)
    for _ in range(1_000):
        driven.now += 450
        driven.batch()
        assert not driven.asks()


@pytest.mark.parametrize("how", ["a lost report", "a report without due times", "an exception"])
def test_what_is_not_known_is_looked_for_regularly(how: str) -> None:
    driven = Driven()
    driven.batch()
    driven.now += 50_000
    if how == "a lost report":
        driven.batches += 1
        driven.batch()
    elif how == "a report without due times":
        driven.batch(are_reported=False)
    else:
        driven.schedule.forget(driven.seconds)
    driven.now += 1_000
    assert driven.asks()


def test_a_new_job_whose_first_report_is_lost_does_not_count_as_new() -> None:
    driven = Driven(batches=1)
    driven.batch()
    driven.now += 1_000
    assert driven.asks()


def test_when_the_drivers_clock_goes_back_new_due_times_count() -> None:
    driven = Driven()
    driven.batch(START + 6_000)
    driven.now = START + 7_000
    driven.batch()
    # The clock goes back by five seconds; the next batch has an earlier time than the last one.
    driven.schedule.note_batch(CompletedBatch(2, START + 2_000, [START + 3_000], {0: 0}), 8.0)
    assert not driven.schedule.is_needed(START + 2_999, 9.0)
    assert driven.schedule.is_needed(START + 3_000, 9.0)


# ---- a small world ---------------------------------------------------------------------------------------------

TICK_MS = 10
TRIGGER_MS = int(INTERVAL_SECONDS * 1000)
REPORT_MS = 250
STEP_LIMIT_MS = 400_000


@dataclass
class World:
    """Groups with timeouts as Spark keeps them, a log, and a driver that sees batches late and loses wake events."""

    seed: int
    lost: float
    now: int = START
    timeouts: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By group: its timeout, and the time of the batch that has set it."""
    unread: int = 0
    end: int = 0
    batches: int = 0
    restarts: int = 0
    events: int = 0
    reports: list[tuple[int, CompletedBatch]] = field(default_factory=list)
    acknowledged: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.started = self.now
        self.schedule = WakeSchedule(0.0, INTERVAL_SECONDS, is_new=True)
        self.requests: set[int] = set()

    def run(self) -> None:
        while self.now < START + STEP_LIMIT_MS:
            self.now += TICK_MS
            if self.random.random() < 0.000_5:
                self.requests.add(self.random.randrange(5))
                self.end += 1
            if self.random.random() < 0.000_1:
                self._restart()
            if self.now % TRIGGER_MS < TICK_MS and self.unread < self.end:
                self._batch()
            self._look()
            self._check()

    def _batch(self) -> None:
        due = []
        for group in range(5):
            timeout = self.timeouts.get(group)
            if group in self.requests or (timeout is not None and timeout[0] < self.now):
                self.timeouts.pop(group, None)
                if self.random.random() < 0.6:
                    wait = self.random.choice([1, 300, 3_000, 45_000, 200_000])
                    self.timeouts[group] = self.now + wait, self.now
                    due.append(due_time(self.now + wait, self.now))
        self.requests.clear()
        self.unread = self.end
        report = CompletedBatch(self.batches, self.now, due, {0: self.end})
        self.batches += 1
        self.reports.append((self.now + self.random.randrange(50, 50 + REPORT_MS), report))

    def _look(self) -> None:
        while self.reports and self.reports[0][0] <= self.now:
            self.schedule.note_batch(self.reports.pop(0)[1], self._seconds)
        while self.acknowledged and self.acknowledged[0][0] <= self.now:
            self.schedule.note_appended(0, self.acknowledged.pop(0)[1])
        if self.schedule.is_needed(self.now, self._seconds):
            self.schedule.note_asked(self._seconds)
            self.events += 1
            if self.random.random() >= self.lost:
                self.acknowledged.append((self.now + self.random.randrange(600), self.end))
                self.end += 1

    def _restart(self) -> None:
        self.restarts += 1
        self.reports.clear()
        self.acknowledged.clear()
        self.started = self.now
        self.schedule = WakeSchedule(self._seconds, INTERVAL_SECONDS, is_new=False)
        # A start appends one.
        self.end += 1

    @property
    def _seconds(self) -> float:
        return (self.now - START) / 1000

    def _check(self) -> None:
        """Every group is called in time: a little late, or a part of the time since the start."""
        for timeout, asked_at in self.timeouts.values():
            late = self.now - timeout
            slack = 2 * TRIGGER_MS + REPORT_MS + 1_000 + (timeout - asked_at) / STEPS
            if self.lost:
                slack += 10 * REPEAT_SECONDS * 1000
            if asked_at < self.started:
                slack += max(FIRST_REGULAR_SECONDS * 1000, (self.now - self.started) / LATE_PART)
            assert late <= slack, (timeout, asked_at, self.now, self.started)


@examples(60)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3]))
def test_no_group_waits_longer_than_the_schedule_promises(seed: int, lost: float) -> None:
    World(seed, lost).run()


def test_the_world_restarts_and_wakes_groups() -> None:
    worlds = [World(seed, 0.0) for seed in range(5)]
    for world in worlds:
        world.run()
    assert sum(world.restarts for world in worlds) > 5
    assert sum(world.events for world in worlds) > 50
