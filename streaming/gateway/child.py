"""A gateway in a process of its own, for as long as the coordinator runs that brought it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from streaming import die_with_parent
from streaming.errors import CannotRun

__all__ = ["running_gateway"]

READY_LIMIT_SECONDS = 60.0
STOP_LIMIT_SECONDS = 20.0
"""Longer than the gateway gives to requests in flight."""


@contextmanager
def running_gateway(options: Mapping[str, str], report: Callable[[str], None]) -> Iterator[None]:
    """Run ``group-coordinator gateway`` with these options by their keys; returns when clients may connect.

    What it says is reported, each line with ``gateway:`` before it. It ends with the block, and with this process
    however that one ends. Raises :class:`CannotRun` when it does not start.
    """
    # A file, since others can read a command line, and passwords may be among the options.
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.writelines(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in options.items())
        file.flush()
        command = [sys.executable, "-m", "streaming.cli", "gateway", "--json", "--config", file.name]
        guard = [sys.executable, "-I", die_with_parent.__file__, str(os.getpid()), "", *command]
        process = subprocess.Popen(
            guard,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C in a terminal reaches the whole process group; the gateway is ended by us.
            start_new_session=True,
        )
        outcome: SimpleQueue[str | None] = SimpleQueue()
        reader = threading.Thread(target=_relay, args=(process, outcome, report), daemon=True)
        reader.start()
        try:
            _await_ready(outcome)
            yield
        finally:
            _end(process)
            reader.join(STOP_LIMIT_SECONDS)


def _relay(process: "subprocess.Popen[str]", outcome: "SimpleQueue[str | None]", report: Callable[[str], None]) -> None:
    """Report every line; put None into ``outcome`` when it is ready, the last line when it has ended."""
    assert process.stderr is not None
    line = "it said nothing"
    with process.stderr:
        for said in process.stderr:
            line, is_ready = _read(said.rstrip())
            report(f"gateway: {line}")
            if is_ready:
                outcome.put(None)
    outcome.put(line)


def _read(line: str) -> tuple[str, bool]:
    """The message of a line, and whether it says that clients may connect. Its log is not JSON."""
    if not line.startswith("{"):
        return line, False
    said = json.loads(line)
    return said["message"], said["ready"]


def _await_ready(outcome: "SimpleQueue[str | None]") -> None:
    try:
        last_line = outcome.get(timeout=READY_LIMIT_SECONDS)
    except Empty:
        last_line = f"it was not ready within {READY_LIMIT_SECONDS:g} s"
    if last_line is not None:
        raise CannotRun(f"the gateway did not start: {last_line}")


def _end(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
