"""What the commands share: output, exit codes, and options that several of them have."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from streaming.cli.boundary import print_error
from streaming.cli.exit_codes import REFUSED as REFUSED
from streaming.cli.exit_codes import USAGE as USAGE
from streaming.cli.extras import missing_extras
from streaming.cli.help_output import flag, option
from streaming.cli.usage import taking
from streaming.contract.option_values import Addresses, KeyAndValue, TopicPrefix
from streaming.contract.output import plain
from streaming.contract.output.terminal import standard_error, standard_output
from streaming.explain.time_travel.point_in_time import milliseconds, point_in_time

KAFKA_PANEL = "Kafka"
OUTPUT_PANEL = "Output"

out, err = standard_output(), standard_error()

METRICS_HELP = "Serve Prometheus metrics at this port; 0 takes a free one."

AsJson = Annotated[bool, flag("--json", "Print JSON instead of text.", OUTPUT_PANEL)]
JsonLines = Annotated[bool, flag("--json", "Report each step as a line of JSON.", OUTPUT_PANEL)]


def brokers_option(text: str = "Kafka brokers.", variable: str | None = None) -> Any:
    """The option for the brokers' addresses, which the environment variable may give."""
    return option(
        "--bootstrap-servers",
        "-b",
        metavar="HOST:PORT,...",
        text=text,
        panel=KAFKA_PANEL,
        envvar=variable,
        callback=taking(Addresses),
    )


Brokers = Annotated[str | None, brokers_option()]
Prefix = Annotated[
    str | None,
    option(
        metavar="PREFIX",
        text="Prefix of the coordinator's topic names.",
        panel=KAFKA_PANEL,
        callback=taking(TopicPrefix),
    ),
]
ConfigurationFile = Annotated[
    Path | None, option("--config", metavar="FILE", text="TOML file with any of the options.")
]
AnyOption = Annotated[
    list[str] | None,
    option(
        "--set",
        metavar="KEY=VALUE",
        text="Any option by its key, also those without a flag. Repeatable.",
        callback=taking(KeyAndValue),
    ),
]
PointInTime = Annotated[
    str | None,
    option("--at", metavar="TIME", text="As of this time: 2026-11-24T10:00:00Z, or an age such as 2h."),
]
Since = Annotated[
    str | None,
    option("--since", metavar="TIME", text="Only what happened since then: a time, or an age such as 2h."),
]


def time_given(text: str, option: str) -> int:
    """The time in an option's argument, ms since the epoch; ends the command if it is none."""
    try:
        return point_in_time(text, datetime.now(UTC))
    except ValueError as error:
        fail(f"{option}: {error}", USAGE)


def duration_given(text: str, option: str) -> int:
    """The duration in an option's argument, ms; ends the command if it is none."""
    try:
        return milliseconds(text)
    except ValueError as error:
        fail(f"{option}: {error}", USAGE)


def progress(as_json: bool) -> Callable[[str], None]:
    """Prints progress; to standard error where standard output is JSON."""
    return err.line if as_json else out.line


def fail(message: str, code: int) -> NoReturn:
    """Print the message to standard error and exit with the code."""
    print_error(message.replace("\n", "\\u000a"))
    raise typer.Exit(code)


def fail_in_lines(message: str, code: int) -> NoReturn:
    """The same for a message of several lines, which no client has broken."""
    print_error(message)
    raise typer.Exit(code)


def require(command: str, *extras: str) -> None:
    """Exit with one line that names the missing extras unless all of them are installed."""
    if missing := missing_extras(f"group-coordinator {command}", *extras):
        err.line(missing, style="red")
        raise typer.Exit(REFUSED)


def write_file(file: Path, content: bytes) -> None:
    """Write a file; an error ends the command."""
    try:
        file.write_bytes(content)
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}", REFUSED)


def print_json(value: Any) -> None:
    """Print a message, or a list of messages, as JSON."""
    plain.print_json(value, indent=2)


def key_values(pairs: Sequence[str] | None, option: str) -> dict[str, str]:
    """Parse an option's ``KEY=VALUE`` arguments into a dict."""
    split = [pair.partition("=") for pair in pairs or ()]
    for key, equals, _ in split:
        if not key or not equals:
            fail(f"{option} {key!r} is not KEY=VALUE", USAGE)
    return {key: value for key, _, value in split}


def reporter(as_json: bool) -> Callable[[str], None]:
    """A function that prints a long-running command's progress lines.

    As JSON, each line is an object with ``message`` and ``ready``, which is true for a line that begins with "ready".
    """

    def report(line: str) -> None:
        if as_json:
            plain.print_json({"ready": line.startswith("ready"), "message": line})
        else:
            out.line(line)

    return report
