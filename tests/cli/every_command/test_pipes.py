"""Every command in a pipe: plain text that is not cut, and no words about a reader that goes away."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from streaming.cli.exit_codes import EXIT_CODES
from tests.cli.every_command.test_mistakes import LEAVES, tried
from tests.cli.every_command.test_wrong_options import write_files
from tests.cli.test_commands import COMMAND
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets
from tests.support.waiting import LIMIT_SECONDS

GROUP = "a-group-whose-name-is-longer-than-a-narrow-terminal-has-columns-for-it-" + "x" * 120

DECORATION = re.compile("[\x1b\u2500-\u257f\u2026]")
"""Escapes, lines of boxes, and the ellipsis of what is cut."""

SERVICES = {
    ("run",): "a job",
    ("gateway",): "a gateway",
    ("broker",): "a broker",
    ("ui",): "a server",
}
"""Commands that end at a signal only; each is told to show its help instead."""

LONG = {
    ("demo",): "it takes minutes",
    ("drill",): "it takes minutes",
    ("sql",): "Spark takes a quarter of a minute: tests/cli/history/test_sql.py",
}
"""Other commands that show their help here, each with the reason."""

ARGUMENTS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("offsets", "commit"): (GROUP, "orders:0=1"),
    ("offsets", "delete"): (GROUP, "--topic", "orders"),
    ("offsets", "diff"): (GROUP, "--from", "1h"),
    ("offsets", "reset"): (GROUP, "--all-topics", "--to-earliest"),
    ("offsets", "restore"): (GROUP, "--as-of", "0s"),
    ("offsets", "clone"): (GROUP, "copy"),
    ("offsets", "import"): (GROUP, "offsets.csv"),
    ("offsets", "apply"): ("plan.json", "--execute"),
    ("groups", "quarantine", "export"): (GROUP, "-o", "snapshot"),
    ("checkpoint", "backup"): ("CHECKPOINT", "backups"),
    ("checkpoint", "restore"): ("CHECKPOINT", "new"),
    ("checkpoint", "rebuild"): ("CHECKPOINT",),
    ("checkpoint", "repartition"): ("CHECKPOINT", "--state-partitions", "2"),
    ("checkpoint", "migrate"): ("CHECKPOINT", "new"),
    ("checkpoint", "downgrade"): ("CHECKPOINT", "--to", "0.1.0"),
}
"""Arguments of commands that need others than a group or the checkpoint."""


def command_line(coordinator: CoordinatorProcess, words: tuple[str, ...]) -> list[str]:
    """A command with what it needs, in front of the coordinator of the tests."""
    if words in SERVICES or words in LONG:
        return [*words, "--help"]
    options = {name for each in LEAVES[words].params for name in each.opts}
    arguments = {each.metavar for each in LEAVES[words].params if each.param_type_name == "argument" and each.required}
    default = ("CHECKPOINT",) * len(arguments) if words[0] == "checkpoint" else (GROUP,) * len(arguments)
    line = [*words, *ARGUMENTS.get(words, default)]
    if "-b" in options:
        line += ["-b", coordinator.bootstrap_servers, "--topic-prefix", coordinator.topics.prefix]
    return [str(coordinator.checkpoint) if each == "CHECKPOINT" else each for each in line]


@pytest.fixture
def folder(coordinator: CoordinatorProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that commands read; the group has committed an offset."""
    commit_offsets(coordinator, GROUP, 1)
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_what_a_pipe_gets_is_plain_and_whole(
    coordinator: CoordinatorProcess, folder: Path, words: tuple[str, ...]
) -> None:
    result = tried(*command_line(coordinator, words))
    assert result.exit_code in EXIT_CODES, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "this should not happen" not in result.output
    if "--help" not in command_line(coordinator, words):
        assert not DECORATION.search(result.output), result.output
        assert GROUP[:60] not in result.output.replace(GROUP, "")


@pytest.mark.long
@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_a_reader_that_goes_away_is_not_mentioned(
    coordinator: CoordinatorProcess, folder: Path, words: tuple[str, ...]
) -> None:
    process = subprocess.Popen(
        [COMMAND, *command_line(coordinator, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        try:
            errors = process.stderr.read()
            code = process.wait(LIMIT_SECONDS)
        finally:
            process.kill()
    assert code in EXIT_CODES
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors
    assert "Broken pipe" not in errors
