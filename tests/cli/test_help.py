"""``--help`` of every command, at the width of a terminal."""

import re
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from streaming.cli.app import app
from streaming.cli.commands.gateway import FLAGS as GATEWAY_FLAGS
from streaming.cli.commands.run import JOB_FLAGS
from streaming.contract.distribution import DISTRIBUTION, installed_version
from streaming.gateway.options import GatewayOptions
from streaming.job.options import JobOptions
from streaming.job.topics.layout import DEFAULT_REQUEST_PARTITIONS, DEFAULT_RESPONSE_PARTITIONS


def commands(command: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """All commands by the words that call them."""
    found = {path: command}
    for name, child in getattr(command, "commands", {}).items():
        found |= commands(child, (*path, name))
    return found


COMMANDS = commands(get_command(app))


def help_of(*command: str, width: int = 80) -> str:
    """The help of a command, as a terminal shows it."""
    shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": str(width), "NO_COLOR": "1"})
    assert shown.exit_code == 0, shown.output
    return shown.output


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_the_terminal_and_truncates_nothing(command: tuple[str, ...], width: int) -> None:
    lines = help_of(*command, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_shows_flags_without_a_type_and_no_markup(command: tuple[str, ...]) -> None:
    shown = help_of(*command)
    assert "<bool>" not in shown
    assert "`" not in shown
    assert not re.search(r"\[/?(bold|dim)\]", shown)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_shows_the_version(command: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*command, "--version"])
    assert (shown.exit_code, shown.output) == (0, f"group-coordinator {installed_version(DISTRIBUTION)}\n")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_option_has_a_description(command: tuple[str, ...]) -> None:
    assert all(option.help for option in COMMANDS[command].params if option.param_type_name == "option")


def test_the_defaults_that_help_shows_are_those_of_the_options() -> None:
    run, gateway = help_of("run", width=200), help_of("gateway", width=200)
    job = JobOptions(bootstrap_servers="b", checkpoint="c")
    assert f"[default: {job.profile}]" in option_line(run, "profile")
    assert f"[default: {job.master}]" in option_line(run, "master")
    assert f"[default: {job.driver_memory}]" in option_line(run, "driver_memory")
    assert f"[default: {DEFAULT_REQUEST_PARTITIONS}]" in option_line(run, "request_partitions")
    assert f"[default: {DEFAULT_RESPONSE_PARTITIONS}]" in option_line(run, "response_partitions")
    defaults = GatewayOptions(bootstrap_servers="b")
    assert f"[default: {defaults.listen}]" in option_line(gateway, "listen")
    assert f"[default: {defaults.listen}]" in option_line(run, "gateway_listen")
    assert f"[default: {defaults.limits.max_connections}]" in option_line(gateway, "max_connections")


def option_line(help_text: str, field: str) -> str:
    """The line of a help text that describes the option."""
    return next(line for line in help_text.splitlines() if re.search(rf"\B--{field.replace('_', '-')}\s", line))


@pytest.mark.parametrize(("command", "flags"), [("run", JOB_FLAGS), ("gateway", GATEWAY_FLAGS)])
def test_the_flags_passed_to_the_options_are_parameters_of_the_command(command: str, flags: tuple[str, ...]) -> None:
    assert set(flags) <= {parameter.name for parameter in COMMANDS[(command,)].params}
