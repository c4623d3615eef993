"""Child processes of the demo and the drills. None of them outlives this process, even if this process is killed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from streaming.embedded import die_with_parent

STOP_SECONDS = 60.0


class ChildProcess:
    """A command in a process group of its own, which is killed at the end of a ``with`` block.

    log: the file that gets the command's output. on_line: called with every line of it, on a thread of this object.
    environment: adds to the variables of this process.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        on_line: Callable[[str], None],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._command = [sys.executable, "-I", die_with_parent.__file__, str(os.getpid()), "", *command]
        self._log = log
        self._on_line = on_line
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.is_running:
            self.kill()

    @property
    def is_running(self) -> bool:
        """Whether the command was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the command, for the first time or after it has ended."""
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **self._environment},
            start_new_session=True,
        )
        self._process = process
        self._reader = threading.Thread(target=self._read, args=(process,), name=f"{self.name}-output", daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with self._log.open("a") as log:
            for line in process.stderr:
                log.write(line)
                log.flush()
                self._on_line(line.rstrip("\n"))

    def wait(self, seconds: float) -> int | None:
        """Wait until the command ends by itself; returns its exit code, or None after ``seconds``."""
        assert self._process is not None
        assert self._reader is not None
        try:
            exit_code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(seconds)
        return exit_code

    def terminate(self) -> int:
        """Send SIGTERM and wait for a clean shutdown, or kill after :data:`STOP_SECONDS`; returns the exit code."""
        assert self._process is not None
        self._process.terminate()
        exit_code = self.wait(STOP_SECONDS)
        if exit_code is None:
            self.kill()
            return -signal.SIGKILL
        return exit_code

    def kill(self) -> None:
        """``kill -9`` the command and its process group, and wait for the end of whatever has its output open."""
        self.send_kill()
        self.wait(STOP_SECONDS)

    def send_kill(self) -> None:
        """``kill -9`` the command and its process group, and return at once."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
