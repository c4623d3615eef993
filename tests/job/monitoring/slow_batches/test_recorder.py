"""What the recorder does with the batches that it is told of."""

import logging
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from streaming.job.monitoring.metrics import Progress, StateProgress
from streaming.job.monitoring.slow_batches.causes import Batch, Cause, Finding
from streaming.job.monitoring.slow_batches.recorder import LINE_SECONDS, Lines, SlowBatchRecorder, completed_batch
from streaming.job.monitoring.slow_batches.usage import Used
from tests.support.waiting import wait_until


def a_finding(number: int, milliseconds: int = 500, cause: Cause = "disk") -> Finding:
    return Finding(Batch(number, 0.0, milliseconds / 1000, 10, {}, {}), cause, 100.0, {}, None)


def test_a_slow_batch_gets_a_line() -> None:
    lines = Lines()
    assert lines.due(5.0) is None
    lines.add(a_finding(3))
    assert lines.due(5.0) == "batch 3 took 500 ms for 10 requests, usually 100 ms; cause: waiting for the disk"
    assert lines.due(6.0) is None


def test_of_several_slow_batches_the_slowest_gets_a_line_after_a_while() -> None:
    lines = Lines()
    lines.add(a_finding(3))
    assert lines.due(5.0) is not None
    for number, milliseconds in [(4, 500), (5, 700), (6, 600)]:
        lines.add(a_finding(number, milliseconds))
    assert lines.due(5.0 + LINE_SECONDS - 0.1) is None
    line = lines.due(5.0 + LINE_SECONDS)
    assert line is not None
    assert "batch 5 took 700 ms" in line
    assert "2 more slow batches" in line


@pytest.mark.parametrize("cause", ["start", "usual"])
def test_what_is_to_be_expected_gets_no_line(cause: Cause) -> None:
    lines = Lines()
    lines.add(a_finding(3, cause=cause))
    assert lines.due(5.0) is None


def progress(number: int, began: float, milliseconds: int) -> Progress:
    phases = {"latestOffset": 1, "addBatch": milliseconds - 1, "triggerExecution": milliseconds}
    return Progress(number, phases, num_input_rows=7, timestamp=datetime.fromtimestamp(began, UTC))


def test_a_report_has_the_times_of_its_batch() -> None:
    batch = completed_batch(progress(3, 1_000.25, 500))
    assert batch == Batch(
        3, 1_000.25, 1_000.75, 7, {"latestOffset": 1, "addBatch": 499, "groups": 0, "stateCommit": 0}, {}
    )
    assert completed_batch(Progress(3, {})) is None


@pytest.mark.parametrize(
    ("updates_ms", "phases"),
    [(300, {"groups": 310, "stateCommit": 20, "addBatch": 169}), (500, {"addBatch": 499})],
)
def test_the_work_is_divided_unless_its_tasks_ran_at_the_same_time(updates_ms: int, phases: dict[str, int]) -> None:
    report = progress(3, 1_000.0, 500)
    report.state_operators = [StateProgress(updates_ms, 10, 20)]
    batch = completed_batch(report)
    assert batch is not None
    assert batch.phases == {"latestOffset": 1, **phases}


@pytest.fixture
def counted() -> Counter[Cause]:
    return Counter()


def run(recorder: SlowBatchRecorder, until: Callable[[], bool], what: str) -> None:
    recorder.start()
    try:
        wait_until(until, what)
    finally:
        recorder.stop()
    assert not recorder.is_alive()


def test_a_slow_batch_is_counted_with_what_was_used_meanwhile(
    counted: Counter[Cause], caplog: pytest.LogCaptureFixture
) -> None:
    collected = 0.0

    def read() -> Used:
        return {"collecting": collected}

    recorder = SlowBatchRecorder(lambda: read, lambda finding: counted.update([finding.cause]))
    began = time.time() + 1
    for number in range(20):
        recorder.note(progress(number, began + number * 0.01, 10))
    recorder.note(progress(20, began + 0.2, 1_000))

    def has_counted() -> bool:
        nonlocal collected
        # Java collects from the beginning of the slow batch on.
        collected = max(0.0, time.time() - began - 0.2)
        return bool(counted)

    with caplog.at_level(logging.WARNING):
        run(recorder, has_counted, "the slow batch is counted")
    assert counted == {"garbage-collection": 1}
    assert "batch 20 took 1,000 ms" in caplog.text


def test_batches_from_before_a_leap_back_of_the_clock_are_judged_without_samples(counted: Counter[Cause]) -> None:
    recorder = SlowBatchRecorder(lambda: dict, lambda finding: counted.update([finding.cause]))
    began = time.time() + 3_600
    for number in range(20):
        recorder.note(progress(number, began + number, 10))
    recorder.note(progress(20, began + 20, 1_000))
    run(recorder, lambda: bool(counted), "the slow batch is counted")
    assert counted == {"unexplained": 1}


def test_a_failure_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> Used:
        raise ValueError("no figures")

    recorder = SlowBatchRecorder(lambda: fail, lambda _: None)
    run(recorder, lambda: "no figures" in caplog.text, "the failure is logged")
    assert caplog.text.count("slow batches are not recorded any more") == 1
