"""Stop on SIGTERM and Ctrl-C, at a moment that the program chooses."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
def stop_requested() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM or Ctrl-C sets instead of ending the process. Call it from the main thread."""
    event = threading.Event()
    with restored_handlers():
        for number in STOP_SIGNALS:
            signal.signal(number, lambda *_: event.set())
        yield event
