"""A command in a terminal of its own: 120 columns, what it prints, Ctrl-C."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.support.waiting import LIMIT_SECONDS, wait_until

COLUMNS, LINES = 120, 50
READ_BYTES = 65_536
CONTROL_C = b"\x03"

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>]|\r")
"""What moves the cursor or sets a colour."""


class Terminal:
    """A shell command that was started in a new terminal; kill it at the end.

    columns: how wide the terminal is.
    """

    def __init__(self, command: str, folder: Path, environment: Mapping[str, str], columns: int = COLUMNS) -> None:
        self.command = command
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
        # "setsid --ctty" makes it the controlling terminal: Ctrl-C then reaches the command as from a keyboard, and the
        # kernel ends the command if this process is killed.
        self._process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", "bash", "-c", command],
            cwd=folder,
            env=dict(environment),
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        self._printed = b""
        self._reader = threading.Thread(target=self._read, name=command, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        """What it has printed until now, without colours."""
        return _ESCAPES.sub("", self._printed.decode(errors="replace"))

    def await_text(self, text: str, after: int = 0) -> None:
        """Wait until it has printed a text ``after`` so many characters. Raises AssertionError if it ends before."""
        wait_until(
            lambda: text in self.output[after:] or not self._reader.is_alive(),
            f"`{self.command}` prints {text!r}",
            describe=lambda: self.output,
        )
        assert text in self.output[after:], f"`{self.command}` ended without {text!r}:\n{self.output}"

    def interrupt(self) -> None:
        """Type Ctrl-C."""
        os.write(self._master, CONTROL_C)

    def wait(self, seconds: float = LIMIT_SECONDS) -> int:
        """Wait until it ends; return its exit code, as a shell shows it."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"`{self.command}` did not end:\n{self.output}") from None
        self._reader.join(seconds)
        return 128 - code if code < 0 else code

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(LIMIT_SECONDS)
        # The end of the terminal is SIGHUP for whatever is left in it.
        if self._master >= 0:
            self._reader.join(1.0)
            os.close(self._master)
            self._master = -1

    def _read(self) -> None:
        while True:
            try:
                read = os.read(self._master, READ_BYTES)
            except OSError:
                # Linux's answer once no process has the terminal open any more.
                return
            if not read:
                return
            self._printed += read
