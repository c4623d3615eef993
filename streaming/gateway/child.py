"""Runs a gateway in a child process of the coordinator."""

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

from streaming.contract.errors import CannotRun
from streaming.embedded import die_with_parent

READY_LIMIT_SECONDS = 60.0
STOP_LIMIT_SECONDS = 20.0
"""Longer than the gateway's own grace period for requests in flight."""


@contextmanager
def running_gateway(options: Mapping[str, str], report: Callable[[str], None]) -> Iterator[None]:
    """Run ``group-coordinator gateway`` while the block runs; the block starts when clients may connect.

    The gateway also ends with this process, even if this process is killed. When the gateway ends by itself, the block
    is interrupted as by Ctrl-C. Raises :class:`CannotRun` when the gateway does not start, and at the end of the block
    if it has failed meanwhile; a gateway that was stopped by a signal has not failed.

    options: the gateway's options by key.
    report: receives each output line of the gateway, with the prefix ``gateway:``.
    """
    # The options go into a file because they may contain passwords, and other users can read a command line.
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
            # Ctrl-C reaches a terminal's whole process group, but this process is to end the gateway.
            start_new_session=True,
        )
        output = _Output(process, report)
        output.start()
        try:
            output.await_ready()
            yield
        except KeyboardInterrupt:
            if not output.ended_early:
                raise
        finally:
            output.expect_end()
            _terminate(process)
            output.join(STOP_LIMIT_SECONDS)
        if output.ended_early and process.returncode != 0:
            raise CannotRun(f"the gateway ended with exit code {process.returncode}: {output.last_line}")


class _Output(threading.Thread):
    """Reports a gateway's output, and interrupts the main thread when the gateway ends by itself.

    ``ended_early``: whether it was ready and has ended before :meth:`expect_end`. ``last_line`` of its output.
    """

    def __init__(self, process: "subprocess.Popen[str]", report: Callable[[str], None]) -> None:
        super().__init__(name="gateway-output", daemon=True)
        self.ended_early = False
        self.last_line = "it wrote no output"
        self._process = process
        self._report = report
        self._is_ready: SimpleQueue[bool] = SimpleQueue()
        self._serves = False
        self._end_expected = False

    def await_ready(self) -> None:
        """Wait until clients may connect. Raises :class:`CannotRun`."""
        try:
            is_ready = self._is_ready.get(timeout=READY_LIMIT_SECONDS)
        except Empty:
            raise CannotRun(f"the gateway did not start: not ready within {READY_LIMIT_SECONDS:g} s") from None
        if not is_ready:
            raise CannotRun(f"the gateway did not start: {self.last_line}")

    def expect_end(self) -> None:
        """Note that the gateway is about to be stopped: its end is no failure."""
        self._end_expected = True

    def run(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr:
            for output in self._process.stderr:
                self.last_line, is_ready = _parse(output.rstrip())
                self._report(f"gateway: {self.last_line}")
                if is_ready:
                    self._serves = True
                    self._is_ready.put(True)
        self._is_ready.put(False)
        if self._serves and not self._end_expected:
            self.ended_early = True
            self._report("stopping: the gateway has ended")
            os.kill(os.getpid(), signal.SIGINT)


def _parse(line: str) -> tuple[str, bool]:
    """Return the message of an output line, and whether it reports readiness. Log lines are not JSON."""
    if not line.startswith("{"):
        return line, False
    status = json.loads(line)
    return status["message"], status["ready"]


def _terminate(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
