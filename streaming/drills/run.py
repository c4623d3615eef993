"""Runs drills one after the other, and writes their report."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from streaming.contract.errors import CannotRun
from streaming.drills.clients.live_clients import Config, LiveClients
from streaming.drills.existing_coordinator import active_job, confirmed, described, scenario
from streaming.drills.own_coordinator import OwnCoordinator
from streaming.drills.performance import perform
from streaming.drills.recording import Recording, Step, StepKind
from streaming.drills.reports.page import page
from streaming.drills.reports.report import DrillReport, Report, as_json, report_of
from streaming.drills.scenarios import SCENARIOS
from streaming.drills.stage import Scenario, Stage
from streaming.embedded.broker import BrokerStartError
from streaming.embedded.jars import resolve_jars
from streaming.embedded.job_process import NotReported

__all__ = ["ALL", "run_drills", "run_on_existing", "write_report"]

ALL = "all"


class Audience:
    """How a run of drills tells what happens: the begin of each scenario, each step, and each result."""

    def __init__(
        self,
        begin: Callable[[Scenario], object],
        step: Callable[[Step], object],
        end: Callable[[DrillReport], object],
        line: Callable[[str], None],
    ) -> None:
        self.begin = begin
        self.step = step
        self.end = end
        self.line = line


def run_drills(drill: str, settings: Sequence[str], audience: Audience) -> Report:
    """Run a drill, or all, on a coordinator of their own; leaves neither processes nor files behind.

    settings: options of the jobs, as ``KEY=VALUE``. The scenarios share a coordinator, unless one could not be
    finished: the next one gets a new coordinator.

    Raises:
        NotReported: the coordinator does not start.
        BrokerStartError, JarResolutionError, MissingPrerequisite, CannotRun: see the broker and the gateway.
    """
    began_at = datetime.now(UTC)
    waiting = [each for name, scenarios in SCENARIOS.items() if drill in (ALL, name) for each in scenarios]
    resolve_jars(audience.line)
    reports: list[DrillReport] = []
    while waiting:
        try:
            _run_until_failure(waiting, settings, audience, reports)
        except (NotReported, CannotRun, BrokerStartError) as failure:
            if not reports:
                raise
            # What was measured until now is worth its report.
            reports.append(_not_begun(waiting.pop(0), failure))
            audience.end(reports[-1])
    return report_of("A coordinator of the drills' own, with an embedded broker and a gateway", began_at, reports)


def _run_until_failure(
    waiting: list[Scenario], settings: Sequence[str], audience: Audience, reports: list[DrillReport]
) -> None:
    """Run scenarios on one coordinator, until one cannot be finished; each moves from ``waiting`` to ``reports``."""
    is_unfinished = False
    with ExitStack() as stack:
        # The JVM of a job that was killed at the end may still write.
        temporary = tempfile.TemporaryDirectory(prefix="group-coordinator-drill-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary))
        recording = Recording()

        def say(kind: StepKind, text: str) -> None:
            audience.step(recording.step(kind, text))

        coordinator = stack.enter_context(OwnCoordinator(folder, settings, say))
        clients = stack.enter_context(
            LiveClients(coordinator.bootstrap_servers, recording, gateway=coordinator.gateway)
        )
        stage = Stage(recording, audience.step, clients, coordinator)
        while waiting and not is_unfinished:
            reports.append(_perform(waiting.pop(0), stage, audience))
            is_unfinished = bool(reports[-1].failure)


def _not_begun(each: Scenario, failure: Exception) -> DrillReport:
    return DrillReport(
        drill=each.drill,
        title=each.title,
        what=each.what,
        began_at=datetime.now(UTC),
        failure=f"no coordinator could be started for this drill: {failure}",
    )


def run_on_existing(
    drill: str, bootstrap_servers: str, prefix: str, config: Config, process_id: int | None, audience: Audience
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
    recording = Recording()
    clients = LiveClients(bootstrap_servers, recording, prefix=prefix, config=config)
    with clients:
        stage = Stage(recording, audience.step, clients)
        done = _perform(scenario(drill, job, lambda: active_job(bootstrap_servers, prefix, config)), stage, audience)
    clients.delete_groups()
    return report_of(f"The coordinator at {bootstrap_servers}, {described(job)}", began_at, [done])


def write_report(report: Report, folder: Path) -> tuple[Path, Path]:
    """Write the report as HTML and as JSON; returns the two files, which are named for the time of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"drill-{report.began_at:%Y-%m-%dT%H-%M-%SZ}"
    html, json = folder / f"{name}.html", folder / f"{name}.json"
    html.write_text(page(report), encoding="utf-8")
    json.write_text(as_json(report), encoding="utf-8")
    return html, json


def _perform(each: Scenario, stage: Stage, audience: Audience) -> DrillReport:
    audience.begin(each)
    report = perform(each, stage)
    audience.end(report)
    return report
