"""Processes that the demo starts: what they say is read line by line, and none of them outlives the demo."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from streaming import die_with_parent

STOP_SECONDS = 60.0


class Child:
    """A command in a process group of its own.

    on_line: is given every line the command writes, from a thread of this object's. Lines also go to ``log``.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, on_line: Callable[[str], None]) -> None:
        self.name = name
        self._command = [sys.executable, "-I", die_with_parent.__file__, str(os.getpid()), "", *command]
        self._log = log
        self._on_line = on_line
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
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, also once more after it has ended."""
        process = subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
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

    def terminate(self) -> int:
        """SIGTERM, and wait for it to end in order; its exit code. Killed if it takes longer than a minute."""
        assert self._process is not None
        assert self._reader is not None
        self._process.terminate()
        try:
            exit_code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            exit_code = -signal.SIGKILL
        self._reader.join(STOP_SECONDS)
        return exit_code

    def kill(self) -> None:
        """kill -9, of the command and of all that it has started."""
        assert self._process is not None
        assert self._reader is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(STOP_SECONDS)
        self._reader.join(STOP_SECONDS)
