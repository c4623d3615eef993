"""A recording becomes episodes: each with its own fault, and times that count from it."""

import pytest

from streaming.drills.recording import Recording


def test_an_episode_counts_from_its_own_fault() -> None:
    recording = Recording()
    recording.step("fault", "of an earlier drill")
    first_step = recording.now()
    recording.step("command", "checkpoint backup")
    start = recording.now()
    before = recording.sent()
    recording.answered(before)
    fault = recording.step("fault", "kill -9")
    recording.step("repair", "started")
    recording.notice("member", "rejoin", "")
    after = recording.sent()
    recording.answered(after, "NOT_COORDINATOR")
    episode = recording.episode(first_step, start, recording.now())
    assert episode is not None
    assert [step.text for step in episode.steps] == ["checkpoint backup", "kill -9", "started"]
    assert episode.steps[1].at == 0
    assert episode.start == pytest.approx(start - fault.at)
    assert [(request.sent < 0, request.error) for request in episode.requests] == [
        (True, ""),
        (False, "NOT_COORDINATOR"),
    ]
    assert episode.repair is not None
    assert 0 < episode.repair < episode.notices[0].at < episode.end


def test_without_a_fault_there_is_no_episode() -> None:
    recording = Recording()
    recording.sent()
    assert recording.episode(0, 0, recording.now()) is None


def test_a_request_that_was_sent_in_the_last_moment_says_nothing_and_an_older_one_does() -> None:
    recording = Recording()
    recording.step("fault", "kill -9")
    recording.sent()
    end = recording.now()
    last_moment, later = recording.episode(0, 0, end), recording.episode(0, 0, end + 10)
    assert last_moment is not None
    assert later is not None
    assert (len(last_moment.requests), len(later.requests)) == (0, 1)


def test_the_first_answer_is_one_to_a_request_that_was_sent_after_the_fault() -> None:
    recording = Recording()
    early = recording.sent()
    fault = recording.step("fault", "kill -9").at
    recording.answered(early)
    assert recording.first_answer_after(fault) is None
    refused, answered = recording.sent(), recording.sent()
    recording.answered(refused, "NOT_COORDINATOR")
    assert recording.first_answer_after(fault) is None
    assert recording.unanswered(recording.now()) == 1
    recording.answered(answered)
    assert recording.first_answer_after(fault) == answered.answered
