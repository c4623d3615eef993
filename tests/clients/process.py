"""A client as users have it: a process of its own, to listen to, to end and to kill."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

STOP_SECONDS = 60.0
TAIL_LINES = 40


class Process:
    """A command. What it writes is kept (``said``), and given to ``on_line`` line by line, on a thread of its own."""

    def __init__(self, name: str, command: Sequence[str], on_line: Callable[[str], None] = lambda _: None) -> None:
        self.name = name
        self.said: list[str] = []
        self._command = list(command)
        self._on_line = on_line
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start it, also once more when it has ended."""
        self.said.clear()
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._process = process
        self._reader = threading.Thread(target=self._read, args=(process,), name=self.name, daemon=True)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def await_line(self, what: str, is_it: Callable[[str], bool], seconds: float = STOP_SECONDS) -> str:
        """Wait for a line, which may have been written before."""

        def found() -> bool:
            return any(map(is_it, self.said)) or not self.is_running

        with self._changed:
            self._changed.wait_for(found, seconds)
            for line in self.said:
                if is_it(line):
                    return line
        raise AssertionError(f"{self.name} did not say {what}; {self.tail()}")

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait until it ends by itself; its exit code."""
        assert self._process is not None
        assert self._reader is not None
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end; {self.tail()}") from None
        self._reader.join(seconds)
        return code

    def request_end(self) -> None:
        """SIGTERM, without waiting."""
        assert self._process is not None
        self._process.terminate()

    def end(self) -> int:
        """SIGTERM, and wait for the orderly end; the exit code."""
        self.request_end()
        return self.wait()

    def kill(self) -> None:
        """``kill -9`` if it runs."""
        if self._process is not None and self._reader is not None:
            if self.is_running:
                with suppress(ProcessLookupError):
                    os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(STOP_SECONDS)
            self._reader.join(STOP_SECONDS)

    def tail(self) -> str:
        """The last that it said, for the message of a failure."""
        state = "is running" if self.is_running else f"ended with {self._process and self._process.returncode}"
        return "\n".join([f"{self.name} {state} and said at last:", *self.said[-TAIL_LINES:]])

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout:
            for raw in process.stdout:
                line = raw.rstrip()
                with self._changed:
                    self.said.append(line)
                    self._changed.notify_all()
                self._on_line(line)
        process.wait()
        with self._changed:
            self._changed.notify_all()
