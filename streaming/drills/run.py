"""Runs drills one after the other, each with a steady time before and after its fault, and writes their report."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.contract.errors import CannotRun
from streaming.drills.clients.live_clients import LiveClients
from streaming.drills.console_output import ConsoleOutput
from streaming.drills.existing_coordinator import active_job, confirmed, described, scenario
from streaming.drills.own_coordinator import OwnCoordinator, check_settings, own_folder
from streaming.drills.recording import Recording
from streaming.drills.reports.figures import figures_of, noticed_in
from streaming.drills.reports.page import page
from streaming.drills.reports.report import DrillReport, Report, as_json, report_of
from streaming.drills.reports.verdict import judge
from streaming.drills.scenarios import SCENARIOS
from streaming.drills.stage import Scenario, Stage
from streaming.drills.waiting import DrillFailed, DrillSkipped
from streaming.embedded.broker import BrokerStartError
from streaming.embedded.jars import resolve_jars
from streaming.embedded.job_process import NotReported

__all__ = ["ALL", "run_drills", "run_on_existing", "write_report"]

ALL = "all"

BEFORE_SECONDS = 8.0
AFTER_SECONDS = 10.0

Run = Callable[[list[Scenario], list[DrillReport]], object]
"""Starts a coordinator, and performs the first scenarios of the list until one cannot be finished.

Each moves from the first list to the second one when it has its report.
"""


def run_drills(drill: str, settings: Sequence[str], output: ConsoleOutput) -> Report:
    """Run a drill, or all, on a coordinator of their own; leaves neither processes nor files behind.

    settings: options of the jobs, as ``KEY=VALUE``. The scenarios share a coordinator, unless one could not be
    finished: the next one gets a new coordinator.

    Raises:
        BadOptions: a setting is wrong, or would separate the jobs from the drills' own brokers, checkpoint and topics.
        NotReported: the coordinator does not start.
        BrokerStartError, JarResolutionError, MissingPrerequisite, CannotRun: see the broker and the gateway.
    """
    check_settings(settings)
    began_at = datetime.now(UTC)
    waiting = [each for each in SCENARIOS if drill in (ALL, each.drill)]
    resolve_jars(output.line)
    reports = run_all(waiting, partial(_run_until_failure, settings, output), output)
    return report_of("A coordinator of the drills' own, with an embedded broker and a gateway", began_at, reports)


def run_all(waiting: list[Scenario], run: Run, output: ConsoleOutput) -> list[DrillReport]:
    """Perform all scenarios, on a new coordinator after each that could not be finished; returns their reports.

    Once there is a report, a coordinator that fails is a failure of the scenario that needed it. Before that, what
    ``run`` raises passes.
    """
    reports: list[DrillReport] = []
    while waiting:
        done = len(reports)
        try:
            run(waiting, reports)
        except (NotReported, CannotRun, BrokerStartError) as failure:
            if not reports:
                raise
            why = f"the coordinator of this drill has failed: {failure}"
            if len(reports) > done and (reports[-1].failure or not waiting):
                # No further scenario was to use it: this was its end.
                reports[-1].failure = reports[-1].failure or why
                output.line(why)
            else:
                reports.append(_new_report(waiting.pop(0), why))
                _show_result(reports[-1], output)
    return reports


def _run_until_failure(
    settings: Sequence[str], output: ConsoleOutput, waiting: list[Scenario], reports: list[DrillReport]
) -> None:
    """See :data:`Run`."""
    recording = Recording(output.step)
    with (
        own_folder() as folder,
        OwnCoordinator(folder, settings, recording.step) as coordinator,
        LiveClients(coordinator.bootstrap_servers, recording, gateway=coordinator.gateway) as clients,
    ):
        stage = Stage(recording, clients, coordinator)
        while waiting:
            reports.append(_perform(waiting[0], stage, output))
            # Not before it has its report: what breaks it off belongs to it.
            del waiting[0]
            if reports[-1].failure:
                return


def run_on_existing(
    drill: str,
    bootstrap_servers: str,
    prefix: str,
    config: LibrdkafkaConfig,
    process_id: int | None,
    output: ConsoleOutput,
) -> Report:
    """Run a drill on the coordinator of these brokers. Its groups are deleted afterwards.

    process_id: the active job's, by which the user confirms. config: librdkafka's settings.

    Raises:
        BadOptions: the user has not confirmed, or the drill needs a coordinator of its own.
        CannotRun: no job is active, or it does not run on this machine.
    """
    began_at = datetime.now(UTC)
    job = active_job(bootstrap_servers, prefix, config)
    confirmed(drill, job, process_id)
    recording = Recording(output.step)
    clients = LiveClients(bootstrap_servers, recording, prefix=prefix, config=config)
    look = partial(active_job, bootstrap_servers, prefix, config)
    try:
        with clients:
            done = _perform(scenario(drill, job, look), Stage(recording, clients), output)
    finally:
        clients.delete_groups()
    return report_of(f"The coordinator at {bootstrap_servers}, {described(job)}", began_at, [done])


def write_report(report: Report, folder: Path) -> tuple[Path, Path]:
    """Write the report as HTML and as JSON; returns the two files, which are named for the time of the run.

    Raises:
        CannotRun: they cannot be written any more.
    """
    name = f"drill-{report.began_at:%Y-%m-%dT%H-%M-%SZ}"
    html, json = folder / f"{name}.html", folder / f"{name}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        html.write_text(page(report), encoding="utf-8")
        json.write_text(as_json(report), encoding="utf-8")
    except OSError as failure:
        raise CannotRun(f"the report cannot be written to {folder}: {failure.strerror}") from failure
    return html, json


# ---- one scenario ----------------------------------------------------------------------------------------------


def perform(each: Scenario, stage: Stage) -> DrillReport:
    """Perform a scenario and measure it. What fails or is missing is in the report; other exceptions pass."""
    report = _new_report(each)
    began, before = time.monotonic(), dict[str, int]()
    first_step = start = stage.recording.now()
    try:
        each.prepare(stage)
        stage.clients.settle()
        stage.clients.watch()
        before = stage.clients.generations()
        start = stage.recording.now()
        stage.watch_for(BEFORE_SECONDS, "the time before the fault is measured")
        each.play(stage)
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
    _measure(report, each, stage, first_step, start)
    after = stage.clients.generations()
    report.generations = {group: (generation, after[group]) for group, generation in before.items()}
    report.acknowledged = stage.clients.ledger.count
    return report


def _new_report(each: Scenario, failure: str = "") -> DrillReport:
    return DrillReport(drill=each.drill, title=each.title, what=each.what, began_at=datetime.now(UTC), failure=failure)


def _check(stage: Stage) -> None:
    """Wait for the answers to what was sent until now, and look for lost commits."""
    stage.clients.await_answers()
    missing = stage.clients.missing_commits()
    for commit in missing:
        stage.recording.notice("check", "lost", commit)
    stage.step(f"{len(missing)} acknowledged commits are lost" if missing else "every acknowledged commit is there")


def _measure(report: DrillReport, each: Scenario, stage: Stage, first_step: float, start: float) -> None:
    """Add the figures, if there was a fault."""
    episode = stage.recording.episode(first_step, start, stage.recording.now())
    if episode is None:
        return
    report.episode = episode
    report.fault_at = stage.recording.began_at + timedelta(seconds=start - episode.start)
    report.figures, report.noticed = figures_of(episode), noticed_in(episode)
    report.expectations = judge(each.objectives, report.figures, report.noticed)


def _perform(each: Scenario, stage: Stage, output: ConsoleOutput) -> DrillReport:
    output.begin(f"{each.drill}: {each.title}", each.what)
    report = perform(each, stage)
    _show_result(report, output)
    return report


def _show_result(report: DrillReport, output: ConsoleOutput) -> None:
    for each in report.expectations:
        output.check(each.met, f"{each.what}: {each.measured} (expected: {each.expected})")
    output.end(report.verdict, report.seconds, report.failure or report.skipped)
