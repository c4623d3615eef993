"""``group-coordinator doctor``: check an installation and say what to do."""

from collections.abc import Iterator
from typing import Annotated

import typer

from streaming.cli.checks.checkpoint import check_checkpoint
from streaming.cli.checks.executors import check_executors
from streaming.cli.checks.finding import Finding, Status, note, problem
from streaming.cli.checks.kafka import KafkaReport, check_kafka
from streaming.cli.checks.packages import check_packages
from streaming.cli.checks.runtime import check_runtime
from streaming.cli.checks.senders import check_senders
from streaming.cli.connection import with_options
from streaming.cli.console import REFUSED, out, print_json
from streaming.cli.help_output import option
from streaming.cli.run_options import NOT_GIVEN, Master, TimedOptions
from streaming.contract.errors import BadOptions
from streaming.job.options import JobOptions

STYLES: dict[Status, str] = {"ok": "green", "note": "yellow", "risk": "yellow", "problem": "red"}


@with_options("given", TimedOptions)
def doctor(
    given: TimedOptions,
    checkpoint: Annotated[str | None, option(metavar="FOLDER", text="The job's checkpoint.")] = None,
    master: Master = None,
) -> None:
    """Check this machine, the brokers, the topics and the checkpoint, and say what to do about each problem.

    Takes the options of run, also from the environment and from a file. A check whose option is not
    given is skipped. With a cluster as --master, a small task runs on each executor. Nothing is created or
    written. Exit code 0: no problem; 1: at least one.
    """
    findings = list(check_packages())
    try:
        options = given.load(checkpoint, master=master)
    except BadOptions as error:
        findings += [
            problem("options", line, "change the option at the place that the line names")
            for line in str(error).splitlines()
        ]
    else:
        findings += [*check_runtime(options.python_worker), *_check_deployment(options, given.timeout)]
    if given.as_json:
        print_json(findings)
    else:
        print_findings(findings)
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(REFUSED)


def _check_deployment(options: JobOptions, timeout: int) -> Iterator[Finding]:
    yield from check_senders(options)
    report = KafkaReport()
    if options.bootstrap_servers == NOT_GIVEN:
        yield note("brokers", "not checked: no address is given", "add -b HOST:PORT")
    else:
        report = check_kafka(options, timeout)
        yield from report.findings
    if options.checkpoint == NOT_GIVEN:
        yield note("checkpoint", "not checked: no checkpoint is given", "add --checkpoint FOLDER")
    else:
        yield check_checkpoint(options, report.request_partitions, report.request_topic_id)
    if not options.is_local:
        yield from check_executors(options)


def print_findings(findings: list[Finding]) -> None:
    """Print each finding as a line, and what to do as a line below it. Commands to copy are not broken."""
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        out.line((f"{finding.status:8}", STYLES[finding.status]), f"{finding.check:{width}}  {finding.detail}")
        if finding.advice:
            out.line(f"{'':{8 + width}}  -> {finding.advice}")
