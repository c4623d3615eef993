"""Ctrl-C of a command: a query ends at once; a service stops in order, and ends at once at the second Ctrl-C.

A thread notices the signal, because the main thread handles it between two of Python's instructions only, and a call of
Kafka's client lasts for seconds. A command that ends because of it prints nothing further: what fails then fails
because of the signal, and would be printed by threads, py4j and the JVM as so many tracebacks.

It imports only the standard library: the command line uses it before anything else.
"""

import os
import select
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C has ended, as of every program in a shell."""

STOP_SECONDS = 2.0
"""How long a service may take to stop in order while it starts, and one that has nothing to finish."""

_CHILDREN = Path("/proc/self/task")


class _Interruption:
    """What is known about the signals of this process."""

    def __init__(self) -> None:
        self.count = 0
        self.stops_in_order = False
        self.limit_seconds: float | None = None
        self.own_signals = 0
        self.clean_ups: list[Callable[[], object]] = []
        self.has_raised = False
        self.ending = threading.Lock()
        self.taking = threading.RLock()
        self.received: int | None = None
        """The end of a pipe from which the numbers of the signals can be read."""


_state = _Interruption()


def watch_for_interrupts() -> None:
    """Handle Ctrl-C from now on. Call it once, on the main thread; without effect if the parent has disabled it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    received, signalled = os.pipe()
    for end in (received, signalled):
        os.set_blocking(end, False)
    _state.received = received
    signal.signal(signal.SIGINT, _interrupt_main_thread)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(received,), name="interrupts", daemon=True).start()


@contextmanager
def stopping_in_order() -> Iterator[None]:
    """Within the block, the first Ctrl-C raises KeyboardInterrupt, or does what a handler of the block does.

    If the block has not ended within :data:`STOP_SECONDS` then, the process ends; see :func:`take_time_to_stop`.
    """
    _state.stops_in_order, _state.limit_seconds = True, STOP_SECONDS
    try:
        yield
    finally:
        _state.stops_in_order = _state.count > 0


def take_time_to_stop() -> None:
    """From now on, the block of :func:`stopping_in_order` has a limit of its own for its stop."""
    _state.limit_seconds = None


def interrupted() -> bool:
    """Whether the user has pressed Ctrl-C."""
    # The thread may not have run since the signal.
    if _state.received is not None:
        _take_signals(_state.received)
    return _state.count > 0


def exit_code() -> int:
    """The exit code of a service that has stopped: 0, or :data:`INTERRUPTED` after Ctrl-C."""
    return INTERRUPTED if interrupted() else 0


def raises_only_once() -> None:
    """Note that the main thread gets its KeyboardInterrupt: later ones would come in the middle of the clean-up."""
    _state.has_raised = True


def interrupt_this_process() -> None:
    """Interrupt the main thread as Ctrl-C does, for a reason of the program's own."""
    _state.own_signals += 1
    os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def cleaned_up_when_ended(clean_up: Callable[[], object]) -> Iterator[None]:
    """Call the function if the process ends at once within the block; the last one that was given comes first."""
    _state.clean_ups.append(clean_up)
    try:
        yield
    finally:
        _state.clean_ups.remove(clean_up)


def end_interrupted() -> NoReturn:
    """End this process at once, from any thread, with the exit code of Ctrl-C.

    Children behind :mod:`~streaming.embedded.die_with_parent` then get SIGTERM; after a second Ctrl-C they are killed.
    """
    if not _state.ending.acquire(blocking=False):
        while True:
            time.sleep(1)
    _print_nothing_further()
    for pid, command in _children():
        guards = [place for place, word in enumerate(command) if word.endswith(b"die_with_parent.py")]
        if not guards or _state.count > 1:
            _kill(pid)
        if guards and _state.count > 1 and (folder := command[guards[0] + 2]):
            shutil.rmtree(folder, ignore_errors=True)
    for clean_up in reversed(_state.clean_ups):
        with suppress(Exception):
            clean_up()
    os._exit(INTERRUPTED)


def _watch(received: int) -> None:
    while True:
        select.select([received], [], [])
        _take_signals(received)


def _take_signals(received: int) -> None:
    """Take note of the signals that have come since the last call, on whichever thread."""
    with _state.taking, suppress(BlockingIOError):
        for number in os.read(received, 64):
            if number == signal.SIGTERM and _state.stops_in_order and _state.limit_seconds is not None:
                _print_nothing_further()
            if number == signal.SIGINT and _state.own_signals:
                _state.own_signals -= 1
            elif number == signal.SIGINT:
                _note_interrupt()


def _note_interrupt() -> None:
    _state.count += 1
    if not _state.stops_in_order or _state.count > 1:
        end_interrupted()
    if _state.limit_seconds is not None:
        _print_nothing_further()
        late = threading.Timer(_state.limit_seconds, end_interrupted)
        late.daemon = True
        late.start()


def _interrupt_main_thread(_number: int, _frame: object) -> None:
    if not _state.stops_in_order:
        # The thread has noticed the signal, too; one of the two ends the process.
        _state.count += 1
        end_interrupted()
    if not _state.has_raised:
        _state.has_raised = True
        raise KeyboardInterrupt


def _print_nothing_further() -> None:
    """Let standard error lead nowhere, also for threads and libraries; on a terminal, end the line that has ``^C``."""
    with suppress(OSError):
        if os.isatty(2) and not _state.has_raised:
            os.write(2, b"\n")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)


def _children() -> Iterator[tuple[int, list[bytes]]]:
    """The ids of this process's children and the words of their command lines, where the system tells them."""
    with suppress(OSError):
        for thread in _CHILDREN.iterdir():
            with suppress(OSError):
                for pid in map(int, (thread / "children").read_text().split()):
                    yield pid, Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def _kill(pid: int) -> None:
    """Kill a child; its whole process group if it is not that of this process."""
    with suppress(OSError):
        if os.getpgid(pid) == os.getpgrp():
            os.kill(pid, signal.SIGKILL)
        else:
            os.killpg(os.getpgid(pid), signal.SIGKILL)
