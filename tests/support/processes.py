"""Commands that run as processes of their own: their output, their end, and the process tree below them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from streaming.embedded import die_with_parent

STOP_LIMIT_SECONDS = 120.0
TAIL_LINES = 40

_PROC = Path("/proc")


class Process:
    """A command that can be started, stopped, killed and started again.

    ``output`` keeps the lines of its stdout and stderr since the last start. ``on_line`` is called with each line, on
    the thread that reads them. ``environment`` adds to the variables of this process; a start uses its present entries.
    The command also ends with this process, even if that is killed. As a context manager, it starts nothing, and is
    killed at the end.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        on_line: Callable[[str], None] = lambda _: None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.output: list[str] = []
        self._command = list(command)
        self._on_line = on_line
        self.environment = dict(environment or {})
        self._process: subprocess.Popen[str] | None = None
        self._pid = 0
        self._reader: threading.Thread | None = None
        self._output_ended = False
        self._changed = threading.Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the command, for the first time or after it has ended."""
        # Children of the former process may still write: a new list takes nothing of theirs.
        self.output = []
        guard = [sys.executable, "-I", die_with_parent.__file__, str(os.getpid()), ""]
        process = subprocess.Popen(
            [*guard, *self._command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **self.environment},
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout as reported:
            self._pid = int(reported.readline() or 0)
        with self._changed:
            self._process, self._output_ended = process, False
        self._reader = threading.Thread(target=self._read, args=(process, self.output), name=self.name, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id of the command, which may have descendants."""
        assert self._pid, f"{self.name} was not started"
        return self._pid

    @property
    def is_running(self) -> bool:
        """Whether the command was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def await_line(self, what: str, matches: Callable[[str], bool], seconds: float = STOP_LIMIT_SECONDS) -> str:
        """The first line of output that matches; waits for it unless it is there already.

        Raises AssertionError with the end of the output if the command ends, or ``seconds`` pass, without such a line.
        """

        def found() -> bool:
            return any(map(matches, self.output)) or self._output_ended

        with self._changed:
            self._changed.wait_for(found, seconds)
            for line in self.output:
                if matches(line):
                    return line
        raise AssertionError(f"{self.name} did not report {what}; {self.tail()}")

    def wait(self, seconds: float = STOP_LIMIT_SECONDS) -> int:
        """Wait until the command ends without a signal from here; returns its exit code."""
        assert self._process is not None
        assert self._reader is not None
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end; {self.tail()}") from None
        self._reader.join(seconds)
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command alone, not to its descendants."""
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM and return at once."""
        # The id cannot belong to another process while the guard, its parent, is running.
        if self.is_running:
            with suppress(ProcessLookupError):
                self.signal(signal.SIGTERM)

    def stop(self) -> int:
        """Send SIGTERM and wait for a clean shutdown; returns the exit code."""
        self.terminate()
        return self.wait()

    def kill(self) -> None:
        """``kill -9`` the command and its descendants, so that none of them can shut down cleanly."""
        if self._process is None or self._reader is None:
            return
        if self.is_running:
            # All are stopped first, so that none reacts to the death of another before its own.
            for number in (signal.SIGSTOP, signal.SIGKILL):
                signal_each(process_tree(self.pid), number)
        self._process.wait(STOP_LIMIT_SECONDS)
        self._reader.join(STOP_LIMIT_SECONDS)

    def tail(self) -> str:
        """Whether the command runs, and the end of its output, for the message of a failure."""
        state = "is running" if self.is_running else f"ended with {self._process and self._process.returncode}"
        return "\n".join([f"{self.name} {state}; the end of its output:", *self.output[-TAIL_LINES:]])

    def _read(self, process: "subprocess.Popen[str]", output: list[str]) -> None:
        assert process.stderr is not None
        with process.stderr:
            for raw in process.stderr:
                line = raw.rstrip()
                with self._changed:
                    output.append(line)
                    self._changed.notify_all()
                self._on_line(line)
        process.wait()
        with self._changed:
            self._output_ended = self._output_ended or self._process is process
            self._changed.notify_all()


def process_tree(root: int) -> list[int]:
    """The ids of a process and its descendants, from the root down."""
    parents = _parents()
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def descendants(pid: int) -> list[int]:
    """The ids of the processes below a process, without its own."""
    return process_tree(pid)[1:]


def signal_each(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each of the processes that has not ended since its id was looked up."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def paused(pids: Sequence[int]) -> Iterator[None]:
    """SIGSTOP processes, and SIGCONT them at the end of the block."""
    signal_each(pids, signal.SIGSTOP)
    try:
        yield
    finally:
        signal_each(pids, signal.SIGCONT)


def parent(pid: int) -> int:
    """The id of a process's parent."""
    return int(stat_fields(pid)[1])


def exists(pid: int) -> bool:
    """Whether the process table has this process; a zombie counts until its parent reaps it."""
    return (_PROC / str(pid)).exists()


def is_running(pid: int) -> bool:
    """Whether the process exists and is not a zombie: an orphan may stay one where process 1 reaps none."""
    try:
        return stat_fields(pid)[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def open_files(pid: int) -> list[str]:
    """What the descriptors of a process lead to; a descriptor that is closed in the meantime is left out."""
    found = []
    for descriptor in (_PROC / str(pid) / "fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(descriptor))
    return found


def command_line(pid: int) -> list[bytes]:
    """The words of a process's command line; none if the process has ended."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def names(pid: int, word: bytes) -> bool:
    """Whether a process's command line contains the word."""
    return any(word in part for part in command_line(pid))


def mapped_files(pid: int) -> set[str]:
    """The files that a process has mapped into its memory, such as libraries."""
    lines = (_PROC / str(pid) / "maps").read_text().splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if "/" in line}


def executable(pid: int) -> bytes:
    """The first word of a process's command line; empty if the process has ended."""
    return b"".join(command_line(pid)[:1])


def processor_seconds(pid: int) -> float:
    """The processor time that a process has used, in seconds."""
    user, system = stat_fields(pid)[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def started_at(pid: int) -> int:
    """When a process started, in clock ticks since the system did."""
    return int(stat_fields(pid)[19])


def stat_fields(pid: int) -> list[str]:
    """The fields of ``/proc/<pid>/stat`` from the third (the state) on.

    The second field, a name in brackets, may contain spaces. Raises FileNotFoundError or ProcessLookupError if the
    process has ended.
    """
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _parents() -> dict[int, int]:
    parents = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                parents[int(folder.name)] = parent(int(folder.name))
    return parents
