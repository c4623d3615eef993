"""``group-coordinator demo``: the whole system on this machine, and what happens when its processes are killed."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.console import REFUSED, AsJson, err, fail_in_lines, out, print_json, require
from streaming.cli.help_output import option
from streaming.cli.usage import file_to_write_in_a_new_folder

Html = Annotated[
    Path | None,
    option(
        "--html",
        metavar="FILE",
        text="Write the story of the demo's group as a page.",
        callback=file_to_write_in_a_new_folder,
    ),
]


def demo(html: Html = None, as_json: AsJson = False) -> None:
    """Show the coordinator at work: a broker, consumers joining and leaving, and three kill -9s.

    Takes about a minute and leaves nothing behind but the page. Kafka clients of two libraries join through the gateway
    if kafka-python is installed (the extra [demo]).
    """
    require("demo", "job", "gateway")
    from streaming.client import CoordinatorError
    from streaming.drills.console_output import ConsoleOutput
    from streaming.drills.demo.run import run_demo
    from streaming.drills.waiting import DrillFailed
    from streaming.embedded.job_process import NotReported

    try:
        checks = run_demo(ConsoleOutput(err if as_json else out), html)
    except (DrillFailed, NotReported, CoordinatorError) as failure:
        fail_in_lines(str(failure), REFUSED)
    passed = all(check.passed for check in checks)
    if as_json:
        print_json({"passed": passed, "checks": [vars(check) for check in checks]})
    if not passed:
        raise typer.Exit(REFUSED)
