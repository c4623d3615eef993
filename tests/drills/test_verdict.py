"""What is expected, and when it is met."""

from streaming.drills.recording import Episode, Notice
from streaming.drills.reports.figures import figures_of, noticed_in
from streaming.drills.reports.verdict import Expectation, RecoveryObjectives, judge, seconds
from tests.drills.episodes import episode, killed_for_six_seconds, steady


def judged(recorded: Episode, objectives: RecoveryObjectives) -> dict[str, Expectation]:
    return {each.what: each for each in judge(objectives, figures_of(recorded), noticed_in(recorded))}


def missed(recorded: Episode, objectives: RecoveryObjectives) -> list[str]:
    return [what for what, each in judged(recorded, objectives).items() if not each.met]


def test_an_outage_within_its_limits_is_as_expected() -> None:
    objectives = RecoveryObjectives(first_answer_seconds=5.5, longest_gap_seconds=7, slowdown=2, errors=False)
    assert missed(killed_for_six_seconds(), objectives) == []


def test_times_beyond_their_limits_are_missed() -> None:
    objectives = RecoveryObjectives(first_answer_seconds=4.9, longest_gap_seconds=6, slowdown=0.9)
    assert missed(killed_for_six_seconds(), objectives) == [
        "first answer since the repair began",
        "longest time without an answer",
        "p50 in the first 5 s of answers, against before",
    ]


def test_without_a_repair_the_first_answer_counts_from_the_fault() -> None:
    expected = judged(episode(steady(-5, 20)), RecoveryObjectives(first_answer_seconds=1))
    assert expected["first answer since the fault"] == Expectation(
        "first answer since the fault", "within 1.0 s", "0.2 s", True
    )


def test_no_answer_at_all_is_missed() -> None:
    silent = episode(steady(-5, -1))
    assert "first answer since the fault" in missed(silent, RecoveryObjectives(first_answer_seconds=60))
    assert (
        judged(silent, RecoveryObjectives(first_answer_seconds=60))["first answer since the fault"].measured == "never"
    )


def test_whatever_members_notice_is_missed_and_errors_only_where_none_is_expected() -> None:
    notices = [
        Notice(1, "member", "expelled", ""),
        Notice(1, "member", "rejoin", ""),
        Notice(1, "kafka", "skipped", ""),
        Notice(1, "kafka", "repeated", ""),
        Notice(1, "check", "lost", ""),
        Notice(1, "kafka", "error", "commit: COORDINATOR_LOAD_IN_PROGRESS"),
    ]
    recorded = episode(steady(-5, 20), notices)
    missed_members = [
        "acknowledged commits lost",
        "members expelled",
        "members that had to join again",
        "records skipped",
    ]
    assert missed(recorded, RecoveryObjectives(first_answer_seconds=1)) == missed_members
    strict = RecoveryObjectives(first_answer_seconds=1, errors=False)
    assert missed(recorded, strict) == [*missed_members, "errors that reached an application"]


def test_seconds_have_the_digits_that_people_use() -> None:
    assert [seconds(value) for value in (None, 0.04, 12.34, 123.4)] == ["never", "0.0 s", "12.3 s", "123 s"]
