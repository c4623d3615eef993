"""``group-coordinator drill``: break a coordinator on purpose, measure its recovery, and write a report."""

from pathlib import Path
from typing import Annotated

import typer

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
    fail_in_lines,
    key_values,
    out,
    require,
)
from streaming.cli.help_output import option
from streaming.contract.errors import BadOptions
from streaming.contract.folders import require_writable
from streaming.contract.option_values import one_of
from streaming.contract.output.logs import silenced
from streaming.contract.output.plain import print_encoded_json

DRILLS = ("all", "kill", "standby", "broker", "restore", "rebuild", "downtime", "damage", "clock")
"""What DRILL may be: ``all``, and the drills in the order in which it runs them."""


Name = Annotated[
    str, typer.Argument(metavar="DRILL", help="Which one, or all of them.", autocompletion=lambda: list(DRILLS))
]
Output = Annotated[
    Path, option("--output", "-o", metavar="FOLDER", text="Where the report is written.", panel=OUTPUT_PANEL)
]
ProcessId = Annotated[
    int | None,
    option("--pid", metavar="PID", text="The active job's process, to confirm the drill.", panel=KAFKA_PANEL, min=1),
]


def drill(
    name: Name = DRILLS[0],
    output: Output = Path("."),
    settings: AnyOption = None,
    bootstrap_servers: Brokers = None,
    topic_prefix: Prefix = None,
    properties: ClientProperties = None,
    process_id: ProcessId = None,
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
    from streaming.drills.console_output import ConsoleOutput
    from streaming.drills.reports.report import as_json as json_of
    from streaming.drills.run import run_drills, run_on_existing, write_report
    from streaming.drills.waiting import DrillFailed
    from streaming.embedded.job_process import NotReported

    console = ConsoleOutput(err if as_json else out)
    # What clients notice is in the report; their log would tell it line by line.
    with silenced("streaming.client"):
        if name not in DRILLS:
            raise BadOptions(f"DRILL: {name!r} is not {one_of(DRILLS)}")
        if bootstrap_servers is not None and settings:
            raise BadOptions("--set is for the jobs that a drill starts itself: leave out --bootstrap-servers")
        if bootstrap_servers is None and any(each is not None for each in (process_id, topic_prefix, properties)):
            raise BadOptions("--pid, --topic-prefix and --property need --bootstrap-servers")
        key_values(settings, "--set")
        require_writable(output)
        try:
            if bootstrap_servers is None:
                report = run_drills(name, settings or (), console)
            else:
                config: dict[str, str | int] = {"log_level": LOG_NOTHING, **key_values(properties, "--property")}
                report = run_on_existing(name, bootstrap_servers, topic_prefix or "", config, process_id, console)
        except (DrillFailed, NotReported) as failure:
            fail_in_lines(str(failure), REFUSED)
        if as_json:
            print_encoded_json(json_of(report))
        html, json = write_report(report, output)
    console.line("")
    console.line(f"the report: {html}, {json}")
    if not report.passed:
        raise typer.Exit(REFUSED)
