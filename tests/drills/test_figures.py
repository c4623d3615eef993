"""The figures of episodes that are known exactly."""

import pytest

from streaming.drills.recording import Notice, ProbeRequest
from streaming.drills.reports.figures import figures_of, noticed_in
from tests.drills.episodes import STEADY_LATENCY, episode, killed_for_six_seconds, steady, waiting


def test_an_outage_is_measured_from_the_fault_and_from_the_repair() -> None:
    figures = figures_of(killed_for_six_seconds())
    assert figures.first_answer_seconds == pytest.approx(6.0)
    assert figures.after_repair_seconds == pytest.approx(5.0)
    assert figures.back_at == pytest.approx(6.0)
    assert figures.unanswered == figures.failed == figures.slow_requests == 0


def test_the_longest_gap_begins_with_the_last_answer_before_the_fault() -> None:
    figures = figures_of(killed_for_six_seconds())
    last_before = -0.3 + STEADY_LATENCY
    assert figures.longest_gap_seconds == pytest.approx(6.0 - last_before)
    assert figures.usual_gap_seconds == pytest.approx(STEADY_LATENCY)


def test_answers_that_were_slow_for_two_seconds_settle_after_two() -> None:
    figures = figures_of(killed_for_six_seconds())
    assert figures.p50_before_ms == pytest.approx(200)
    assert figures.p50_after_ms == pytest.approx(200)
    assert figures.settled_seconds == pytest.approx(2.0)
    assert figures.slowest_ms == pytest.approx(6200)


def test_a_start_that_stays_slow_has_a_slowdown_and_does_not_settle() -> None:
    figures = figures_of(episode([*steady(-5, 0), *steady(0, 20, latency=1.0)]))
    assert figures.slowdown == pytest.approx(5.0)
    assert figures.settled_seconds is None


def test_without_any_answer_there_is_no_time_to_recovery() -> None:
    lost = [ProbeRequest(request.sent) for request in steady(0, 20)]
    figures = figures_of(episode([*steady(-5, -0.3), *lost]))
    assert figures.first_answer_seconds is None
    assert figures.longest_gap_seconds == pytest.approx(20 - (-0.4 + STEADY_LATENCY))
    assert figures.back_at is None
    assert figures.p50_after_ms is None
    assert figures.unanswered == len(lost)


def test_an_answer_with_an_error_is_no_answer() -> None:
    refused = [ProbeRequest(request.sent, request.answered, "COORDINATOR_NOT_AVAILABLE") for request in steady(0, 5)]
    figures = figures_of(episode([*steady(-5, -0.2), *refused, *steady(5, 20)]))
    assert figures.first_answer_seconds == pytest.approx(5.0 + STEADY_LATENCY)
    assert figures.failed == len(refused)


def test_an_answer_that_a_client_would_not_have_awaited_is_counted() -> None:
    figures = figures_of(episode([*steady(-5, 0), *waiting(0, 1, until=40), *steady(40, 50)], end=50))
    assert figures.slow_requests == 10


def test_only_what_clients_notice_after_the_fault_counts() -> None:
    notices = [
        Notice(-1, "member", "error", "before"),
        Notice(1, "member", "error", "commit: RequestTimedOut"),
        Notice(2, "member", "error", "commit: RequestTimedOut"),
        Notice(2, "member", "expelled", "Heartbeat: UNKNOWN_MEMBER_ID"),
        Notice(3, "member", "rejoin", ""),
        Notice(4, "check", "lost", "partition 0"),
    ]
    noticed = noticed_in(episode([*steady(-5, 5), ProbeRequest(6), ProbeRequest(7, 8, "NOT_COORDINATOR")], notices))
    assert (noticed.expelled, noticed.rejoins, noticed.lost, noticed.skipped) == (1, 1, 1, 0)
    assert noticed.error_texts == {
        "member: commit: RequestTimedOut": 2,
        "probe: NOT_COORDINATOR": 1,
        "probe: no answer": 1,
    }
    assert noticed.errors == 4
