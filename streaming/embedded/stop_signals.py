"""Stop on SIGTERM and Ctrl-C, at a moment that the program chooses."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
