"""Runs a gateway in a child process of the coordinator."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

import tomli_w

from streaming.contract.errors import CannotRun
from streaming.embedded import die_with_parent
from streaming.embedded.interruption import interrupt_this_process

CONFIGURATION = "/dev/stdin"

READY_LIMIT_SECONDS = 60.0
STOP_LIMIT_SECONDS = 20.0
"""Longer than the gateway's own grace period for requests in flight."""


@contextmanager
def running_gateway(options: Mapping[str, str], report: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Run ``group-coordinator gateway`` while the block runs; the block starts when clients may connect.

    Yields a function that begins to stop the gateway; the end of the block does so, too, and waits for its end.

    The gateway also ends with this process, even if this process is killed. When the gateway ends by itself, the block
    is interrupted as by Ctrl-C. Raises :class:`CannotRun` when the gateway does not start, and at the end of the block
    if it has failed meanwhile; a gateway that was stopped by a signal has not failed.

    options: the gateway's options by key.
    report: receives each output line of the gateway, with the prefix ``gateway:``.
    """
    command = [sys.executable, "-m", "streaming.cli", "gateway", "--json", "--config", CONFIGURATION]
    guard = [sys.executable, "-I", die_with_parent.__file__, str(os.getpid()), "", *command]
    process = subprocess.Popen(
        guard,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # Ctrl-C reaches a terminal's whole process group, but this process is to end the gateway.
        start_new_session=True,
    )
    output = _Output(process, report)
    output.start()

    def begin_stop() -> None:
        output.expect_end()
        process.send_signal(signal.SIGTERM)

    try:
        _configure(process, options)
        output.await_ready()
        yield begin_stop
    except KeyboardInterrupt:
        if not output.ended_early:
            raise
    finally:
        begin_stop()
        _await_end(process)
        output.join(STOP_LIMIT_SECONDS)
    if output.ended_early and process.returncode != 0:
        raise CannotRun(f"the gateway ended with exit code {process.returncode}: {output.last_line}")


def _configure(process: "subprocess.Popen[bytes]", options: Mapping[str, str]) -> None:
    """Write the options to the gateway's standard input.

    They may hold passwords. Other users can read a command line, and a file would outlive a ``kill -9``.
    """
    assert process.stdin is not None
    # A gateway that has ended already is reported by its output.
    with suppress(BrokenPipeError), process.stdin as pipe:
        # A variable that is not UTF-8 stays so: the gateway reports it.
        pipe.write(tomli_w.dumps(options).encode(errors="surrogateescape"))


class _Output(threading.Thread):
    """Reports a gateway's output, and interrupts the main thread when the gateway ends by itself.

    ``ended_early``: whether it was ready and has ended before :meth:`expect_end`. ``last_line`` of its output.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", report: Callable[[str], None]) -> None:
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
                self.last_line, is_ready = _parse(output.decode(errors="replace").rstrip())
                self._report(f"gateway: {self.last_line}")
                if is_ready:
                    self._serves = True
                    self._is_ready.put(True)
        self._is_ready.put(False)
        if self._serves and not self._end_expected:
            self.ended_early = True
            self._report("stopping: the gateway has ended")
            interrupt_this_process()


def _parse(line: str) -> tuple[str, bool]:
    """Return the message of an output line, and whether it reports readiness. Log lines are not JSON."""
    if not line.startswith("{"):
        return line, False
    status = json.loads(line)
    return status["message"], status["ready"]


def _await_end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(STOP_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
