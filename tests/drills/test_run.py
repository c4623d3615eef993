"""What becomes of the reports when a coordinator or a broker fails in the middle of a run of drills."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from streaming.contract.errors import BadOptions, CannotRun
from streaming.contract.output.terminal import Terminal
from streaming.drills.clients.live_clients import LiveClients
from streaming.drills.console_output import ConsoleOutput
from streaming.drills.own_coordinator import OwnCoordinator
from streaming.drills.recording import Recording
from streaming.drills.reports.report import DrillReport, Report
from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.run import Run, perform, run_all, run_drills, write_report
from streaming.drills.scenarios.checkpoints import rebuild_words
from streaming.drills.stage import Scenario, Stage
from streaming.embedded.broker import BrokerStartError

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
SILENT = ConsoleOutput(Terminal(Console(quiet=True)))
OBJECTIVES = RecoveryObjectives(first_answer_seconds=60)


def scenario(name: str) -> Scenario:
    return Scenario(drill=name, title=name, what="", objectives=OBJECTIVES, play=lambda _: None)


def done(each: Scenario, failure: str = "") -> DrillReport:
    return DrillReport(drill=each.drill, title=each.title, what=each.what, began_at=NOW, failure=failure)


class Lines(ConsoleOutput):
    """Keeps the results and the lines."""

    def __init__(self) -> None:
        super().__init__(Terminal(Console(quiet=True)))
        self.lines: list[str] = []

    def end(self, verdict: str, seconds: float, reason: str = "") -> None:
        self.lines.append(verdict)

    def line(self, text: str) -> None:
        self.lines.append(text)


def failures(reports: list[DrillReport]) -> dict[str, str]:
    return {report.drill: report.failure for report in reports}


@pytest.mark.parametrize("failure", [CannotRun("no job is active"), BrokerStartError("the broker did not start")])
def test_what_fails_within_a_drill_is_in_its_own_report(failure: Exception) -> None:
    def fail(_stage: Stage) -> None:
        raise failure

    recording = Recording()
    stage = Stage(recording, LiveClients("127.0.0.1:1", recording))
    failing = Scenario(drill="broker", title="", what="", objectives=OBJECTIVES, play=lambda _: None, prepare=fail)
    report = perform(failing, stage)
    assert (report.drill, report.failure) == ("broker", str(failure))


def run_of(*coordinators: tuple[int, str, Exception | None]) -> Run:
    """Coordinators that run so many scenarios, of which the last has a failure, and then raise."""
    waiting_coordinators = list(coordinators)

    def run(waiting: list[Scenario], reports: list[DrillReport]) -> None:
        count, failure, end = waiting_coordinators.pop(0)
        reports += [done(waiting.pop(0), failure if number == count else "") for number in range(1, count + 1)]
        if end is not None:
            raise end

    return run


def test_the_next_drill_gets_a_new_coordinator_and_its_failure_to_start_is_that_drills_own() -> None:
    run = run_of((1, "not answered", None), (0, "", BrokerStartError("no port")), (1, "", None))
    reports = run_all([scenario("kill"), scenario("broker"), scenario("clock")], run, SILENT)
    expected = {"kill": "not answered", "broker": "the coordinator of this drill has failed: no port", "clock": ""}
    assert failures(reports) == expected


def test_a_failure_within_a_drill_is_not_booked_on_the_next_one() -> None:
    run = run_of((1, "", CannotRun("the gateway ended")), (1, "", None))
    reports = run_all([scenario("kill"), scenario("broker"), scenario("clock")], run, SILENT)
    expected = {"kill": "", "broker": "the coordinator of this drill has failed: the gateway ended", "clock": ""}
    assert failures(reports) == expected


def test_a_coordinator_that_fails_at_its_end_belongs_to_the_last_drill_and_no_report_is_lost() -> None:
    output = Lines()
    reports = run_all([scenario("kill")], run_of((1, "", CannotRun("the gateway ended"))), output)
    assert failures(reports) == {"kill": "the coordinator of this drill has failed: the gateway ended"}
    assert output.lines == ["the coordinator of this drill has failed: the gateway ended"]


def test_the_end_after_an_unfinished_drill_does_not_hide_its_failure_or_fail_the_next_one() -> None:
    run = run_of((1, "not answered", CannotRun("the gateway ended")), (1, "", None))
    reports = run_all([scenario("kill"), scenario("clock")], run, SILENT)
    assert failures(reports) == {"kill": "not answered", "clock": ""}


def test_a_coordinator_that_never_starts_ends_the_run() -> None:
    with pytest.raises(BrokerStartError):
        run_all(
            [scenario("kill"), scenario("clock")],
            run_of((0, "", BrokerStartError("no port"))),
            SILENT,
        )


def test_a_report_that_cannot_be_written_is_an_error_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    report = Report(coordinator="", began_at=NOW, ended_at=NOW, passed=True, machine={}, versions={}, drills=[])
    with pytest.raises(CannotRun, match=r"the report cannot be written to \S+/file/reports: Not a directory"):
        write_report(report, tmp_path / "file" / "reports")


@pytest.mark.parametrize("key", ["bootstrap-servers", "checkpoint", "topic-prefix", "topic_prefix"])
def test_options_that_would_part_the_jobs_from_the_drill_are_refused(key: str) -> None:
    with pytest.raises(BadOptions, match=f"--set {key.replace('_', '-')}: a drill chooses this option"):
        run_drills("kill", ["state-store=rocksdb", f"{key}=other"], SILENT)


def test_a_rebuild_has_the_options_of_the_jobs(tmp_path: Path) -> None:
    coordinator = OwnCoordinator(tmp_path, ["state-store=rocksdb"], lambda _kind, _text: None)
    words = rebuild_words(coordinator, "127.0.0.1:9092")
    assert words[:5] == ["checkpoint", "rebuild", str(tmp_path / "checkpoint"), "-b", "127.0.0.1:9092"]
    assert words[-2:] == ["--set", "state-store=rocksdb"]
