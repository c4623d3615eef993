"""Every command with ``--help``, with nothing and with each of its options wrong: one line, and a documented exit code.

The commands come from the application, so that a new one is tried without being listed here.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streaming.cli.app import app
from streaming.cli.exit_codes import EXIT_CODES, REFUSED, USAGE
from tests.cli.test_commands import COMMAND, UNREACHABLE, run
from tests.cli.test_help import COMMANDS

LEAVES = {words: command for words, command in COMMANDS.items() if not hasattr(command, "commands")}
GROUPS = COMMANDS.keys() - LEAVES.keys()

STARTS_WITHOUT_ARGUMENTS = {("broker",), ("demo",), ("drill",)}


def tried(*arguments: str) -> Any:
    """Run a command line in this process, without brokers and variables."""
    variables = {"GROUP_COORDINATOR_BOOTSTRAP_SERVERS": None, "GROUP_COORDINATOR_TOPIC_PREFIX": None}
    return CliRunner().invoke(app, arguments, env=variables)


def wrong_options() -> Iterator[tuple[tuple[str, ...], str]]:
    """Each command with each of its options that takes a number: any other option may take such a text."""
    for words, command in LEAVES.items():
        for option in command.params:
            annotation = getattr(getattr(option, "type_descriptor", None), "annotation", None)
            if option.param_type_name == "option" and annotation is int:
                yield words, option.opts[0]


def required_arguments(command: Any) -> list[str]:
    return ["x" for each in command.params if each.param_type_name == "argument" and each.required]


def assert_one_line(result: Any, code: int) -> None:
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    lines = [line for line in result.stderr.splitlines() if line]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_is_shown(words: tuple[str, ...], option: str) -> None:
    shown = tried(*words, option)
    assert shown.exit_code == 0
    assert "Usage:" in shown.stdout


@pytest.mark.parametrize("words", sorted(LEAVES.keys() - STARTS_WITHOUT_ARGUMENTS), ids=" ".join)
def test_nothing_is_no_traceback(words: tuple[str, ...]) -> None:
    result = tried(*words)
    assert result.exit_code in EXIT_CODES
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if any(each.required for each in LEAVES[words].params):
        assert_one_line(result, USAGE)
        assert " is missing: give " in result.stderr


@pytest.mark.parametrize("words", sorted(GROUPS), ids=" ".join)
def test_a_group_of_commands_without_a_command_shows_its_help(words: tuple[str, ...]) -> None:
    result = tried(*words)
    assert result.exit_code == USAGE
    assert "Usage:" in result.output


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_option_that_there_is_not_is_one_line(words: tuple[str, ...]) -> None:
    assert_one_line(tried(*words, "--nosuchoption"), USAGE)


@pytest.mark.parametrize(("words", "option"), list(wrong_options()), ids=" ".join)
@pytest.mark.parametrize("value", ["soon", "-1000000", "1.5"])
def test_a_wrong_number_is_one_line_that_says_which_numbers_are_right(
    words: tuple[str, ...], option: str, value: str
) -> None:
    if value == "-1000000" and option in ("--to-offset", "--shift-by"):
        pytest.skip("a negative number is right")
    result = (
        tried(*words, *required_arguments(LEAVES[words]), "-b", UNREACHABLE, option, value)
        if any("-b" in each.opts for each in LEAVES[words].params)
        else tried(*words, *required_arguments(LEAVES[words]), option, value)
    )
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code == USAGE, result.output
    assert result.stderr.startswith("error: ")
    assert "valid integer" not in result.stderr


def test_a_number_is_described_by_its_bounds() -> None:
    assert "--timeout: 'soon' is not a whole number, 1 or more" in tried("groups", "list", "--timeout", "soon").stderr
    assert "'70000' is not a whole number from 0 to 65535" in tried("ui", "--port", "70000").stderr


def test_a_missing_address_names_option_and_variable() -> None:
    said = tried("explain", "billing").stderr
    assert "-b or --bootstrap-servers HOST:PORT" in said
    assert "GROUP_COORDINATOR_BOOTSTRAP_SERVERS" in said


RUN = ["run", "-b", UNREACHABLE, "--checkpoint", "s3a://bucket/checkpoint", "--set"]
"""A job whose next word is an option."""


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["groups", "list", "-b", UNREACHABLE, "-X", "foo=1"], USAGE, "No such configuration property"),
        (["groups", "list", "-b", UNREACHABLE, "-X", "foo"], USAGE, "is not KEY=VALUE"),
        (["explain", "g", "-b", UNREACHABLE, "--since", "yesterday"], USAGE, "--since"),
        (["offsets", "apply", "/proc/nope/plan", "--execute", "-b", UNREACHABLE], REFUSED, "/proc/nope/plan"),
        (["checkpoint", "backup", "/proc/nope", "/proc/nope/b"], REFUSED, "/proc/nope"),
        (["gateway", "-b", UNREACHABLE, "--config", "/proc/nope/c"], USAGE, "/proc/nope/c cannot be read"),
        (["groups", "lst"], USAGE, "Did you mean 'list'?"),
        ([*RUN, "group-acl-file=/proc/nope/acls"], REFUSED, "group-acl-file /proc/nope/acls cannot be read"),
        ([*RUN, "principal-key-file=/proc/nope/keys"], REFUSED, "principal-key-file /proc/nope/keys cannot be read"),
        ([*RUN, "identity-key-file=/proc/nope/key"], REFUSED, "identity-key-file /proc/nope/key cannot be read"),
        ([*RUN, "require-signature=true"], REFUSED, "no key with which a sender could sign"),
        ([*RUN, "require-signature=perhaps"], USAGE, "'perhaps' is not true or false"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], code: int, says: str) -> None:
    result = tried(*arguments)
    assert_one_line(result, code)
    assert says in result.stderr


def test_the_version_is_shown() -> None:
    shown = tried("--version")
    assert (shown.exit_code, shown.stdout.split()[0]) == (0, "group-coordinator")


def test_an_error_that_nobody_has_thought_of_is_one_line_in_a_process_too(tmp_path: Path) -> None:
    # A folder where a file is expected, in a process of its own: also the log and the hooks of threads are in place.
    refused = run("offsets", "apply", str(tmp_path), "--execute", "-b", UNREACHABLE)
    assert (refused.returncode, refused.stderr.count("\n")) == (REFUSED, 1)


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen([COMMAND, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as shown:
        assert shown.stdout is not None
        assert shown.stderr is not None
        shown.stdout.close()
        assert shown.stderr.read() == ""
        assert shown.wait(60) == REFUSED
