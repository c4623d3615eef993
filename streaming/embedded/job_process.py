"""``group-coordinator run`` as a child process, and the lines that it reports."""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from streaming.embedded.child_process import ChildProcess

START_LIMIT_SECONDS = 180.0
LOG_LINES = 20
PAUSE_SECONDS = 0.05

PROGRAM = (sys.executable, "-m", "streaming.cli")
"""The words with which this installation's ``group-coordinator`` starts."""


class NotReported(Exception):
    """A job has not reported what was awaited. The message ends with the last lines of its log."""


class JobProcess(ChildProcess):
    """A job.

    bootstrap_servers, checkpoint, arguments: those of ``run``. log, environment: see :class:`ChildProcess`.
    """

    def __init__(
        self,
        name: str,
        bootstrap_servers: str,
        checkpoint: Path | str,
        log: Path,
        *,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._lines: list[str] = []
        self._changed = threading.Condition()
        command = [*PROGRAM, "run", "--json", "--bootstrap-servers", bootstrap_servers]
        command += ["--checkpoint", str(checkpoint), *arguments]
        super().__init__(name, command, log, self._add_line, environment)

    def start(self) -> None:
        """Start it, for the first time or after it has ended, and return at once."""
        with self._changed:
            self._lines.clear()
        super().start()

    def await_ready(self) -> None:
        """Wait until its first batch is complete. Raises NotReported."""
        self.await_line("that it is ready", lambda line: line.startswith("ready"))

    def await_standby(self) -> None:
        """Wait until it stands by. Raises NotReported."""
        self.await_line("that it stands by", lambda line: line.startswith("standby"))

    def await_line(self, what: str, matches: Callable[[str], bool]) -> str:
        """Wait for a line of output since the start; returns it.

        Raises:
            NotReported: the job has ended, or :data:`START_LIMIT_SECONDS` have passed, without such a line.
        """
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while True:
            has_ended = not self.is_running
            if has_ended:
                # The thread that reads the last lines ends a moment later than the process.
                self.wait(START_LIMIT_SECONDS)
            with self._changed:
                for line in self._lines:
                    if matches(line):
                        return line
                if has_ended or time.monotonic() > deadline:
                    raise NotReported(f"{self.name} did not report {what}; the end of its log:\n{self.tail()}")
                self._changed.wait(PAUSE_SECONDS)

    def tail(self) -> str:
        """The last lines of its log; empty if there is none."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LOG_LINES:]) if self._log.exists() else ""

    def _add_line(self, line: str) -> None:
        message = line
        with suppress(ValueError):
            status = json.loads(line)
            message = str(status.get("message", line)) if isinstance(status, dict) else line
        with self._changed:
            self._lines.append(message)
            self._changed.notify_all()
