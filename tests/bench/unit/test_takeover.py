"""What clients see of a take-over is computed from the timings of their requests."""

import json
from datetime import UTC, datetime, timedelta

from streaming.job.lifecycle.phases import HAND_OVER, TAKE_OVER, Phases
from tests.bench.latency import Timings
from tests.bench.outages.takeover import TakeOver, lines, reported_phases, seen


def test_the_silence_ends_with_the_first_answer_after_it_and_not_with_answers_that_were_under_way() -> None:
    due = [number / 10 for number in range(600)]
    # The fault is at 40 s; an answer that was sent before it arrives 10 ms later, the next one 2 s later.
    latencies = [0.05 if at < 39.99 else max(0.1, 42.0 - at) for at in due]
    found = seen(Timings(latencies, due, [], 0), 39.94, "kill", has_standby=True)
    assert found.first_answer == 2.06
    assert found.longest_silence == 2.05
    assert (found.p50_before, found.p50_after) == (50.0, 100.0)


def test_a_silence_that_ended_before_the_fault_does_not_count() -> None:
    due = [number / 10 for number in range(600)]
    # At 39.2 s, a slow batch delays answers until 39.8 s; the stop at 39.94 s delays them until 40.3 s only.
    latencies = [
        max(0.05, 39.8 - at) if 39.2 <= at < 39.8 else max(0.05, 40.3 - at) if at >= 39.9 else 0.05 for at in due
    ]
    found = seen(Timings(latencies, due, [], 0), 39.94, "stop", has_standby=True)
    assert found.first_answer == 0.36
    assert found.longest_silence == 0.45


def test_a_line_says_what_a_kind_of_fault_did() -> None:
    one = TakeOver(
        fault="stop", has_standby=True, first_answer=0.5, longest_silence=0.4, p50_before=50, p50_after=75, failed=1
    )
    (line,) = lines([one, one])
    assert line == (
        "stop with a standby, 2 times: first answer after 0.50 s (p99 0.50 s), longest silence 0.40 s, p50 of the "
        "first 5 s 1.5 times that before (at most 1.5), 2 requests failed"
    )


def test_the_phases_of_both_jobs_follow_each_other_from_the_fault_on() -> None:
    fault_at = datetime(2026, 11, 28, 12, 0, 0, 0, UTC)
    stopped = Phases(HAND_OVER, fault_at + timedelta(milliseconds=3), {"batch complete": 80, "announced": 20})
    standby = Phases(TAKE_OVER, fault_at + timedelta(milliseconds=110), {"active": 50, "first batch written": 200})
    of_stopped, of_standby = (
        ["a warning", json.dumps({"ready": False, "message": one.line()})] for one in (stopped, standby)
    )
    assert reported_phases(of_stopped, of_standby, fault_at) == {
        "until hand-over": 3,
        "batch complete": 80,
        "announced": 20,
        "until take-over": 7,
        "active": 50,
        "first batch written": 200,
    }
    assert reported_phases([], of_standby, fault_at) == {
        "until take-over": 110,
        "active": 50,
        "first batch written": 200,
    }


def test_each_phase_has_a_line_with_its_part_of_the_slowest_take_over() -> None:
    quick = TakeOver(
        fault="kill", has_standby=True, first_answer=0.5, longest_silence=0.4, p50_before=50, p50_after=75, failed=0,
        phases={"until take-over": 100, "active": 40},
    )  # fmt: skip
    slow = TakeOver(
        fault="kill", has_standby=True, first_answer=1.6, longest_silence=1.5, p50_before=50, p50_after=75, failed=0,
        phases={"until take-over": 90, "active": 1_100},
    )  # fmt: skip
    assert list(lines([quick, slow]))[1:] == [
        "    until take-over: 95 ms (at most 100 ms), in the slowest one 90 ms",
        "    active: 570 ms (at most 1100 ms), in the slowest one 1100 ms",
    ]
