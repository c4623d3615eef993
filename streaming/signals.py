"""Waiting for somebody to say stop."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_requested() -> Iterator[threading.Event]:
    """An event that Ctrl-C or SIGTERM sets, instead of ending the process on the spot. Main thread only."""
    event = threading.Event()
    before = {number: signal.signal(number, lambda *_: event.set()) for number in STOP_SIGNALS}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
