"""Performs one scenario: the steady time, the fault, the recovery, the time after it, and the check of all commits."""

import time
from datetime import UTC, datetime, timedelta

from streaming.contract.errors import CannotRun
from streaming.drills.errors import DrillFailed, DrillSkipped
from streaming.drills.reports.figures import figures_of, noticed_in
from streaming.drills.reports.report import DrillReport
from streaming.drills.reports.verdict import judge
from streaming.drills.stage import Scenario, Stage
from streaming.embedded.broker import BrokerStartError
from streaming.embedded.job_process import NotReported

BEFORE_SECONDS = 8.0
AFTER_SECONDS = 10.0


def perform(scenario: Scenario, stage: Stage) -> DrillReport:
    """Perform a scenario and measure it. What fails or is missing is in the report; other exceptions pass."""
    report = DrillReport(drill=scenario.drill, title=scenario.title, what=scenario.what, began_at=datetime.now(UTC))
    began, before = time.monotonic(), dict[str, int]()
    first_step = start = stage.recording.now()
    try:
        scenario.prepare(stage)
        stage.clients.settle()
        stage.clients.watch()
        before = stage.clients.generations()
        start = stage.recording.now()
        stage.watch_for(BEFORE_SECONDS, "the time before the fault is measured")
        scenario.play(stage)
        stage.await_answers()
        stage.watch_for(AFTER_SECONDS, "the time after it is measured")
        _check(stage)
    except DrillSkipped as skipped:
        report.skipped = str(skipped)
    except (DrillFailed, NotReported, CannotRun, BrokerStartError) as failed:
        report.failure = str(failed)
    finally:
        stage.clients.watch(False)
    report.seconds = time.monotonic() - began
    _measure(report, scenario, stage, first_step, start)
    after = stage.clients.generations()
    report.generations = {group: (generation, after[group]) for group, generation in before.items()}
    report.acknowledged = stage.clients.ledger.count
    return report


def _check(stage: Stage) -> None:
    """Wait for the answers to what was sent until now, and look for lost commits."""
    stage.clients.await_answers_until(stage.recording.now())
    missing = stage.clients.missing_commits()
    for each in missing:
        stage.recording.notice("check", "lost", each)
    stage.step(f"{len(missing)} acknowledged commits are lost" if missing else "every acknowledged commit is there")


def _measure(report: DrillReport, scenario: Scenario, stage: Stage, first_step: float, start: float) -> None:
    """Add the figures, if there was a fault."""
    episode = stage.recording.episode(first_step, start, stage.recording.now())
    if episode is None:
        return
    report.episode = episode
    report.fault_at = stage.recording.began_at + timedelta(seconds=start - episode.start)
    report.figures, report.noticed = figures_of(episode), noticed_in(episode)
    report.expectations = judge(scenario.objectives, report.figures, report.noticed)
