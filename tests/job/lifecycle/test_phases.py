"""The phases of a take-over, from the moments that are noted to the line that drills and measurements read."""

from datetime import UTC, datetime, timedelta

from streaming.job.lifecycle.phases import HAND_OVER, TAKE_OVER, PhaseRecorder, Phases, read_phases

BEGAN_AT = datetime(2026, 11, 28, 12, 0, 0, 250_000, UTC)


def test_a_line_tells_all_that_was_recorded() -> None:
    phases = Phases(TAKE_OVER, BEGAN_AT, {"active": 41, "first batch planned": 30})
    assert phases.line() == "take-over since 2026-11-28T12:00:00.250+00:00: active 41 ms, first batch planned 30 ms"
    assert read_phases(phases.line()) == phases
    assert phases.ended_at == BEGAN_AT + timedelta(milliseconds=71)


def test_other_lines_tell_no_phases() -> None:
    assert read_phases("ready: append requests") is None
    assert read_phases("standby: the job on host with process id 7 has been active since 2026-11-28") is None


def test_what_ends_is_recorded_between_begin_and_finish_only() -> None:
    recorder = PhaseRecorder()
    recorder.end("of a start that is no take-over")
    assert recorder.finish() is None
    recorder.begin(HAND_OVER)
    recorder.end("batch complete")
    recorder.end("announced")
    phases = recorder.finish()
    assert phases is not None
    assert (phases.what, list(phases.durations)) == (HAND_OVER, ["batch complete", "announced"])
    assert recorder.finish() is None


def test_the_phases_of_the_first_batch_count_from_the_start_of_the_query() -> None:
    recorder = PhaseRecorder()
    recorder.begin(TAKE_OVER)
    recorder.end("query started")
    begun_at = datetime.now(UTC) + timedelta(seconds=2)
    spark = {"latestOffset": 3, "walCommit": 4, "getBatch": 1, "queryPlanning": 12, "addBatch": 180, "commitOffsets": 5}
    recorder.end_first_batch(begun_at, spark)
    phases = recorder.finish()
    assert phases is not None
    assert phases.durations["first batch planned"] == 20
    assert phases.durations["first batch written"] == 180
    # The batch began two seconds after that, give or take the roundings.
    assert abs((phases.ended_at - begun_at).total_seconds() - 0.2) < 0.01
    assert 1_900 < phases.durations["first batch begun"] <= 2_000


def test_a_first_batch_is_not_recorded_without_a_take_over() -> None:
    recorder = PhaseRecorder()
    recorder.end_first_batch(BEGAN_AT, {"addBatch": 5})
    assert recorder.finish() is None
