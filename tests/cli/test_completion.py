"""What a shell completes a command line to: the same protocol as the script of ``--install-completion``."""

import time

import pytest
from typer.testing import CliRunner

from streaming.cli.app import app
from streaming.cli.commands.drill import DRILLS
from streaming.cli.group_selection import STATES, TYPE_NAMES
from streaming.explain.live.columns import COLUMNS
from streaming.job.profiles import PROFILES
from streaming.job.state_stores import STATE_STORES
from tests.cli.test_commands import UNREACHABLE, group, run
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets

__all__ = ["group"]

NAME = "group-coordinator"


def protocol(words: str) -> dict[str, str]:
    """The environment in which bash asks for what the last word, which may be empty, can become."""
    count = len(words.split(" ")) if "'" not in words else len(words.partition("'")[0].split(" "))
    return {
        "_GROUP_COORDINATOR_COMPLETE": "complete_bash",
        "COMP_WORDS": f"{NAME} {words}",
        "COMP_CWORD": str(count),
    }


def completed(words: str) -> list[str]:
    """What the words can become. Nothing is printed besides."""
    result = CliRunner().invoke(app, prog_name=NAME, env=protocol(words))
    assert result.stderr == ""
    return [line for line in result.stdout.splitlines() if line]


STORES = list(STATE_STORES)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("run --profile ", list(PROFILES)),
        ("run --state-store ", STORES),
        ("checkpoint rebuild --state-store ", STORES),
        ("checkpoint migrate --state-store ", STORES),
        ("checkpoint downgrade --to ", ["0.1.0"]),
        ("groups list --state ", list(STATES)),
        ("groups list --state Sta", ["Stable"]),
        ("groups list --type ", list(TYPE_NAMES)),
        ("drill ", list(DRILLS)),
        ("top --sort ", [column.key for column in COLUMNS]),
        ("sql 'select * from gro", ["select * from groups"]),
        ("sql 'select * from groups join off", ["select * from groups join offsets"]),
        ("sql 'select gro", []),
        # An option that ends the command ends no completion.
        ("--version dril", ["drill"]),
    ],
)
def test_what_has_a_fixed_set_of_values_completes_to_them(words: str, values: list[str]) -> None:
    assert completed(words) == values


GROUP_COMMANDS = [
    *(f"groups {name}" for name in ("list", "describe", "delete", "configure")),
    *(f"offsets {name}" for name in ("list", "commit", "delete", "history", "diff", "reset", "restore", "undo")),
    *(f"offsets {name}" for name in ("clone", "export", "import")),
    *("explain", "replay"),
]


def test_a_group_completes_to_the_ids_that_a_shell_takes_as_they_are(
    coordinator: CoordinatorProcess, group: str
) -> None:
    ids = [f"{group}-a", f"{group}-b.1"]
    for each in (*ids, f"{group}-$(reboot)", f"{group} spaced", f"{group}-*", f"-{group}", f"other-{group}"):
        commit_offsets(coordinator, each, 1)
    address = f"-b {coordinator.bootstrap_servers} --topic-prefix {coordinator.topics.prefix}"
    for command in GROUP_COMMANDS:
        assert completed(f"{command} {address} {group}") == ids, command
    assert completed(f"groups describe {address} -{group}") == []
    assert completed(f"groups describe {address} {group}-a {group}-b") == [f"{group}-b.1"]

    from_variables = run(
        GROUP_COORDINATOR_BOOTSTRAP_SERVERS=coordinator.bootstrap_servers,
        GROUP_COORDINATOR_TOPIC_PREFIX=coordinator.topics.prefix,
        **protocol(f"explain {group}-a"),
    )
    assert (from_variables.stdout, from_variables.stderr) == (f"{group}-a\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        f"-b {UNREACHABLE} ",
        f"-b {UNREACHABLE} -X no.such.property=1 ",
        f"-b {UNREACHABLE} -X nonsense ",
        "-b , ",
        f"--nosuch -b {UNREACHABLE} ",
    ],
)
def test_without_brokers_that_answer_a_group_completes_to_nothing_in_silence(arguments: str) -> None:
    began = time.monotonic()
    assert completed(f"groups describe {arguments}bil") == []
    # A second, and what a busy machine adds.
    assert time.monotonic() - began < 5


def test_without_brokers_nothing_reaches_the_terminal_of_the_process() -> None:
    ended = run(**protocol(f"offsets list -b {UNREACHABLE} bil"))
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "", "")
