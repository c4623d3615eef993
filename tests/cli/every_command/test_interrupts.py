"""Ctrl-C at several moments of commands: while Python imports, while they connect or start, and while they run."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from streaming.cli.app import STOP_IN_ORDER
from streaming.cli.exit_codes import INTERRUPTED
from tests.cli.every_command.test_wrong_options import command_line, write_files
from tests.cli.test_commands import COMMAND, UNREACHABLE
from tests.cli.test_help import COMMANDS
from tests.support.processes import descendants, is_running
from tests.support.waiting import LIMIT_SECONDS, wait_until

LEAVES = [words for words, command in COMMANDS.items() if not hasattr(command, "commands")]
CONNECTED = [words for words in LEAVES if {"properties", "timeout"} <= {each.name for each in COMMANDS[words].params}]
"""Commands that ask the coordinator."""
END_SECONDS = 15.0
"""Three seconds, with room for a machine that is five times slower."""

AGAIN_SECONDS = 0.05

ONCE_AND_AGAIN = pytest.mark.parametrize("again", [False, True], ids=["once", "again and again"])

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


def assert_ends_cleanly(process: "subprocess.Popen[str]", *, again: bool = False) -> None:
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    if again:
        press_until_the_end(process)
    _, errors = process.communicate(timeout=LIMIT_SECONDS)
    # A command that has waited for a second says so, and a gateway logs why its producers do not connect.
    expected = ("waiting for Kafka at ", "FAIL [group-coordinator-gateway#")
    said = [line for line in errors.splitlines() if not line.startswith(expected)]
    assert (process.returncode, said) == (INTERRUPTED, [])
    assert time.monotonic() - begin < END_SECONDS


def press_until_the_end(process: "subprocess.Popen[str]") -> None:
    """Press Ctrl-C again and again, as somebody does who does not want to wait."""

    def has_ended() -> bool:
        with suppress(subprocess.TimeoutExpired):
            process.wait(AGAIN_SECONDS)
        # Once it has ended, no signal is sent.
        process.send_signal(signal.SIGINT)
        return process.returncode is not None

    wait_until(has_ended, "the end")


@pytest.mark.long
@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_ctrl_c_during_the_imports(words: tuple[str, ...]) -> None:
    with started(*words) as process:
        wait_until(lambda: handles_interrupts(process), "that it handles Ctrl-C")
        assert_ends_cleanly(process)


@pytest.mark.parametrize("words", sorted((name,) for name in STOP_IN_ORDER), ids=" ".join)
def test_ctrl_c_again_and_again_during_the_imports_of_a_service(words: tuple[str, ...]) -> None:
    with started(*words) as process:
        wait_until(lambda: handles_interrupts(process), "that it handles Ctrl-C")
        assert_ends_cleanly(process, again=True)


@pytest.mark.parametrize("words", CONNECTED, ids=" ".join)
def test_ctrl_c_while_any_command_waits_for_brokers(tmp_path: Path, words: tuple[str, ...]) -> None:
    write_files(tmp_path)
    with started(*command_line(words, "--timeout"), "--timeout", "600", folder=tmp_path) as process:
        # Kafka's client has threads of its own.
        wait_until(lambda: threads(process) > 3, "that it connects")
        assert_ends_cleanly(process)


@ONCE_AND_AGAIN
@pytest.mark.parametrize(
    "arguments",
    [
        ("groups", "list", *PATIENT),
        ("offsets", "list", "g", *PATIENT),
        ("sql", "select 1", *PATIENT),
        ("ui", *PATIENT),
        ("run", "-b", UNREACHABLE, "--checkpoint", "checkpoint"),
        ("gateway", "-b", UNREACHABLE, "--listen", "127.0.0.1:0"),
    ],
    ids=" ".join,
)
def test_ctrl_c_while_a_command_waits_for_brokers(tmp_path: Path, arguments: tuple[str, ...], again: bool) -> None:
    with started(*arguments, folder=tmp_path) as process:
        # Kafka's client has threads of its own.
        wait_until(lambda: threads(process) > 3, "that it connects")
        assert_ends_cleanly(process, again=again)


@ONCE_AND_AGAIN
@pytest.mark.jvm
def test_ctrl_c_while_spark_starts(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, again: bool) -> None:
    checkpoint = tmp_path_factory.mktemp("checkpoint")
    with started("sql", "--checkpoint", str(checkpoint), "select * from groups", folder=tmp_path) as process:
        wait_until(lambda: bool(descendants(process.pid)), "that Java starts")
        children = descendants(process.pid)
        assert_ends_cleanly(process, again=again)
        wait_until(lambda: not any(map(is_running, children)), "the end of Java")
    assert list(tmp_path.iterdir()) == []


@ONCE_AND_AGAIN
@pytest.mark.jvm
def test_ctrl_c_while_the_broker_of_a_run_starts(tmp_path: Path, again: bool) -> None:
    with started("run", "--embedded", "--checkpoint", str(tmp_path / "checkpoint")) as process:
        wait_until(lambda: bool(descendants(process.pid)), "that Java starts")
        children = descendants(process.pid)
        assert_ends_cleanly(process, again=again)
        wait_until(lambda: not any(map(is_running, children)), "the end of the broker")


@ONCE_AND_AGAIN
@pytest.mark.jvm
def test_ctrl_c_while_a_broker_runs(tmp_path: Path, again: bool) -> None:
    with started("broker", "--data-dir", str(tmp_path / "kafka")) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Kafka listens")
        assert_ends_cleanly(process, again=again)
