"""What the commands of ``group-coordinator`` have in common: options, exit codes, and how they speak."""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NoReturn

import msgspec
import typer
from rich.console import Console

REFUSED, USAGE, UNANSWERED, INTERRUPTED = 1, 2, 3, 130
"""Exit codes; see :mod:`streaming.cli`."""

out = Console()
err = Console(stderr=True)

BootstrapServers = Annotated[
    str,
    typer.Option(
        "--bootstrap-servers",
        "-b",
        envvar="GROUP_COORDINATOR_BOOTSTRAP_SERVERS",
        help="Kafka brokers, `host:port[,host:port...]`.",
    ),
]
TopicPrefix = Annotated[
    str,
    typer.Option(
        "--topic-prefix", envvar="GROUP_COORDINATOR_TOPIC_PREFIX", help="What the coordinator's topics begin with."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def fail(message: str, code: int) -> NoReturn:
    """Print one line to standard error and leave with the exit code."""
    err.print(f"group-coordinator: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)


def print_json(value: Any) -> None:
    """Print a message, or a list of them, as JSON."""
    sys.stdout.write(json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False) + "\n")


def key_values(pairs: Sequence[str] | None, option: str) -> dict[str, str]:
    """The ``KEY=VALUE`` pairs that an option was given, as a dict."""
    split = [pair.partition("=") for pair in pairs or ()]
    for key, equals, _ in split:
        if not key or not equals:
            fail(f"{option} {key!r} is not KEY=VALUE", USAGE)
    return {key: value for key, _, value in split}


def reporter(as_json: bool) -> Callable[[str], None]:
    """Prints what a long-running command says, line by line; one that begins with ``ready`` is marked for programs."""

    def report(line: str) -> None:
        if as_json:
            sys.stdout.write(json.dumps({"ready": line.startswith("ready"), "message": line}) + "\n")
            sys.stdout.flush()
        else:
            out.print(line, markup=False, highlight=False, soft_wrap=True)

    return report
