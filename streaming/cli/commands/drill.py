"""``group-coordinator drill``: break a coordinator on purpose, measure its recovery, and write a report."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from streaming.cli.connection import LOG_NOTHING, ClientProperties
from streaming.cli.console import (
    KAFKA_PANEL,
    OUTPUT_PANEL,
    REFUSED,
    AnyOption,
    AsJson,
    Brokers,
    Prefix,
    err,
    fail,
    failures_as_lines,
    key_values,
    out,
    require,
)
from streaming.cli.help_output import option
from streaming.contract.errors import BadOptions

if TYPE_CHECKING:
    from streaming.drills.recording import Step
    from streaming.drills.reports.report import DrillReport
    from streaming.drills.run import Audience
    from streaming.drills.stage import Scenario

COLOURS = {"fault": "red", "repair": "green", "command": "cyan", "step": "default"}


DRILLS = ("all", "kill", "standby", "broker", "restore", "rebuild", "downtime", "damage", "clock")
"""What DRILL may be: ``all``, and the drills in the order in which it runs them."""


def drill(
    name: Annotated[str, typer.Argument(metavar="DRILL", help="Which one, or all of them.")] = DRILLS[0],
    output: Annotated[
        Path, option("--output", "-o", metavar="FOLDER", text="Where the report is written.", panel=OUTPUT_PANEL)
    ] = Path("."),
    settings: AnyOption = None,
    bootstrap_servers: Brokers = None,
    topic_prefix: Prefix = None,
    properties: ClientProperties = None,
    process_id: Annotated[
        int | None,
        option("--pid", metavar="PID", text="The active job's process, to confirm the drill.", panel=KAFKA_PANEL),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Break a coordinator under live clients, measure, and write a report as HTML and JSON.

    The coordinator is a new one on this machine, with a broker, jobs and a gateway; nothing of it is left behind.
    --set gives its jobs other options. Exit code 0: every expectation was met.

      kill      kill -9 of the job, and a new start
      standby   kill -9 and SIGTERM of the job, while another one stands by
      broker    the broker is away for some seconds
      restore   the checkpoint is lost, and a backup restored
      rebuild   the checkpoint is lost, and rebuilt from the journal
      downtime  the job is away while requests pile up
      damage    a file of the checkpoint is torn
      clock     the clocks of job and broker are wrong, one after the other

    With -b, kill and standby run on the coordinator of these brokers, from the host of its active job: kill sends
    SIGKILL, standby SIGTERM. Without --pid, the command only says which process that would be.
    """
    require("drill", "job", "gateway")
    from streaming.drills.errors import DrillFailed
    from streaming.drills.reports.report import as_json as json_of
    from streaming.drills.run import prepare_folder, run_drills, run_on_existing, write_report
    from streaming.embedded.job_process import NotReported

    # What clients notice is in the report; their log would tell it line by line.
    logging.getLogger("streaming.client").setLevel(logging.CRITICAL)
    console = err if as_json else out
    audience = _audience(console)
    with failures_as_lines():
        if name not in DRILLS:
            raise BadOptions(f"drill {name!r} is none of {', '.join(DRILLS)}")
        prepare_folder(output)
        try:
            if bootstrap_servers is None:
                if process_id is not None or topic_prefix is not None or properties is not None:
                    raise BadOptions("--pid, --topic-prefix and --property need --bootstrap-servers")
                key_values(settings, "--set")
                report = run_drills(name, settings or (), audience)
            else:
                if settings:
                    raise BadOptions("--set is for the jobs that a drill starts itself: leave out --bootstrap-servers")
                config: dict[str, str | int] = {"log_level": LOG_NOTHING, **key_values(properties, "--property")}
                report = run_on_existing(name, bootstrap_servers, topic_prefix or "", config, process_id, audience)
        except (DrillFailed, NotReported) as failure:
            fail(str(failure), REFUSED)
        if as_json:
            sys.stdout.write(json_of(report))
        html, json = write_report(report, output)
    _print(console, f"\nthe report: {html}, {json}")
    if not report.passed:
        raise typer.Exit(REFUSED)


def _audience(console: Console) -> "Audience":
    from streaming.drills.reports.verdict import seconds
    from streaming.drills.run import Audience

    def begin(scenario: "Scenario") -> None:
        console.print(f"\n[bold]{scenario.drill}: {scenario.title}[/bold]", highlight=False)
        _print(console, scenario.what)

    def step(done: "Step") -> None:
        prompt = "$ " if done.kind == "command" else ""
        console.print(
            f"{done.at:6.1f}s  {prompt}{done.text}",
            style=COLOURS[done.kind],
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    def end(report: "DrillReport") -> None:
        for each in report.expectations:
            mark = "[green]ok    [/green]" if each.met else "[red]MISSED[/red]"
            console.print(f"{mark}  {each.what}: {each.measured} (expected: {each.expected})", highlight=False)
        colour = {"passed": "green", "skipped": "yellow"}.get(report.verdict, "red")
        console.print(f"[{colour}]{report.verdict}[/{colour}] in {seconds(report.seconds)}", highlight=False)
        if reason := report.failure or report.skipped:
            _print(console, reason)

    return Audience(begin, step, end, lambda line: _print(console, line))


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
