"""Ctrl-C at several moments of commands: while Python imports, while they connect or start, and while they run."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.cli.exit_codes import INTERRUPTED
from tests.cli.test_commands import COMMAND, UNREACHABLE
from tests.cli.test_help import COMMANDS
from tests.support.processes import descendants, is_running
from tests.support.waiting import LIMIT_SECONDS, wait_until

LEAVES = [words for words, command in COMMANDS.items() if not hasattr(command, "commands")]
END_SECONDS = 15.0
"""Three seconds, with room for a machine that is five times slower."""

PATIENT = ("-b", UNREACHABLE, "--timeout", "600")


@contextmanager
def started(*arguments: str, folder: Path | None = None) -> Iterator["subprocess.Popen[str]"]:
    """A command in a process of its own, which is killed at the end."""
    process = subprocess.Popen(
        [COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        # A shell starts what runs in the background with Ctrl-C disabled, and so does a test in it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def threads(process: "subprocess.Popen[str]") -> int:
    return len(os.listdir(f"/proc/{process.pid}/task"))


def handles_interrupts(process: "subprocess.Popen[str]") -> bool:
    """Whether the command watches for Ctrl-C, which it does before its imports: a thread does that."""
    return threads(process) > 1


def assert_ends_cleanly(process: "subprocess.Popen[str]") -> None:
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT_SECONDS)
    # A command that has waited for a second says so.
    said = [line for line in errors.splitlines() if not line.startswith("waiting for Kafka at ")]
    assert (process.returncode, said) == (INTERRUPTED, [])
    assert time.monotonic() - begin < END_SECONDS


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_ctrl_c_during_the_imports(words: tuple[str, ...]) -> None:
    with started(*words) as process:
        wait_until(lambda: handles_interrupts(process), "that it handles Ctrl-C")
        assert_ends_cleanly(process)


@pytest.mark.parametrize(
    "arguments",
    [("groups", "list", *PATIENT), ("offsets", "list", "g", *PATIENT), ("explain", "g", *PATIENT), ("ui", *PATIENT)],
    ids=" ".join,
)
def test_ctrl_c_while_a_command_waits_for_brokers(arguments: tuple[str, ...]) -> None:
    with started(*arguments) as process:
        # Kafka's client has threads of its own.
        wait_until(lambda: threads(process) > 3, "that it connects")
        assert_ends_cleanly(process)


@pytest.mark.jvm
def test_ctrl_c_while_spark_starts(tmp_path: Path) -> None:
    with started("sql", "-b", UNREACHABLE, "select * from groups", folder=tmp_path) as process:
        wait_until(lambda: bool(descendants(process.pid)), "that Java starts")
        children = descendants(process.pid)
        assert_ends_cleanly(process)
        wait_until(lambda: not any(map(is_running, children)), "the end of Java")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.jvm
def test_ctrl_c_while_the_broker_of_a_run_starts(tmp_path: Path) -> None:
    with started("run", "--embedded", "--checkpoint", str(tmp_path / "checkpoint")) as process:
        wait_until(lambda: bool(descendants(process.pid)), "that Java starts")
        children = descendants(process.pid)
        assert_ends_cleanly(process)
        wait_until(lambda: not any(map(is_running, children)), "the end of the broker")


@pytest.mark.jvm
def test_ctrl_c_while_a_broker_runs(tmp_path: Path) -> None:
    with started("broker", "--data-dir", str(tmp_path / "kafka")) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Kafka listens")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_SECONDS)
        assert (process.returncode, errors) == (INTERRUPTED, "")
