"""``group-coordinator demo``: the whole system on this machine, and what happens when its processes are killed."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.console import REFUSED, AsJson, err, fail, failures_as_lines, out, require
from streaming.cli.help_output import option

Html = Annotated[Path | None, option("--html", metavar="FILE", text="Write the story of the demo's group as a page.")]


def demo(html: Html = None, as_json: AsJson = False) -> None:
    """Show the coordinator at work: a broker, consumers joining and leaving, and three kill -9s.

    Takes about a minute and leaves nothing behind but the page. Kafka clients of two libraries join through the gateway
    if kafka-python is installed (the extra [demo]).
    """
    require("demo", "job", "gateway")
    from streaming.demo.scenario import DemoFailed, run_demo

    try:
        with failures_as_lines():
            passed = run_demo(err if as_json else out, as_json, html)
    except DemoFailed as error:
        fail(str(error), REFUSED)
    if not passed:
        raise typer.Exit(REFUSED)
