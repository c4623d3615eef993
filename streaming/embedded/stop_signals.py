"""Stop on SIGTERM and Ctrl-C, at a moment that the program chooses."""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import NoReturn

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

CHILD_ENDED = signal.SIGUSR1
"""A program's signal to its own main thread: a process without which it cannot go on has ended."""


class StopRequest:
    """An event that a signal's handler may set, for a program whose main thread alone waits for it.

    A handler runs in the main thread, anywhere, also within ``threading.Event.wait`` while that holds the event's
    lock: ``Event.set`` would then wait for the lock forever. :class:`queue.SimpleQueue` allows such a call.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._wake: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Request the stop."""
        self._is_set = True
        self._wake.put(None)

    def is_set(self) -> bool:
        """Whether the stop was requested."""
        return self._is_set

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the request, at most so long; returns whether it has come."""
        if not self._is_set:
            with suppress(Empty):
                self._wake.get(timeout=seconds)
        return self._is_set


def end_at_once(code: int) -> NoReturn:
    """End this process without its clean-up, from any thread; what was reported is not lost."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def ending_late_stop(
    limit_seconds: float, end: Callable[[int], object], on_signal: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Call ``end`` if the block lasts longer than ``limit_seconds`` after a stop signal, or after CHILD_ENDED.

    Use it on the main thread. ``end`` gets the number of the first signal.

    A stop waits for brokers, processes and threads, each with a limit of its own; a supervisor has one for all. Both
    functions are called on a thread, ``on_signal`` at the first signal: the main thread handles signals only when what
    it calls has returned, and a call to brokers that are away lasts.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received, signalled = os.pipe()
    os.set_blocking(signalled, False)
    former = signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch_stop, args=(received, former, limit_seconds, end, on_signal), daemon=True)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(former)
        os.close(signalled)
        watch.join()
        os.close(received)


def _watch_stop(
    received: int, former: int, limit_seconds: float, end: Callable[[int], object], on_signal: Callable[[], object]
) -> None:
    """Wait for a stop signal, then for the end of the pipe, which the end of the block closes.

    ``former``: where the numbers of signals went before; they go there, too. -1 for nowhere.
    """
    deadline: float | None = None
    first = 0
    while True:
        wait = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([received], [], [], wait)[0]:
            end(first)
            return
        numbers = os.read(received, 64)
        if not numbers:
            return
        if former >= 0:
            with suppress(BlockingIOError):
                os.write(former, numbers)
        stops = [number for number in numbers if number in (*STOP_SIGNALS, CHILD_ENDED)]
        if deadline is None and stops:
            deadline, first = time.monotonic() + limit_seconds, stops[0]
            on_signal()


@contextmanager
def restored_handlers() -> Iterator[None]:
    """Restore the handlers of the stop signals after the block, if it runs in the main thread: no other one can."""
    former = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in former.items():
                signal.signal(number, handler)


@contextmanager
def stop_requested() -> Iterator[StopRequest]:
    """Yield what SIGTERM or Ctrl-C sets instead of ending the process. Call it from the main thread."""
    stop = StopRequest()
    with restored_handlers():
        for number in STOP_SIGNALS:
            signal.signal(number, lambda *_: stop.set())
        yield stop
