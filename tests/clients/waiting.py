"""Waiting for what nobody tells."""

import time
from collections.abc import Callable
from contextlib import suppress

__all__ = ["LIMIT_SECONDS", "await_condition"]

LIMIT_SECONDS = 60.0
PAUSE_SECONDS = 0.1


def await_condition(what: str, condition: Callable[[], bool], describe: Callable[[], str] = str) -> None:
    """Ask until it holds. An ``OSError`` (an HTTP error is one) means that it does not hold yet.

    ``describe`` says how things stand, for the message of a failure.
    """
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError):
            if condition():
                return
        time.sleep(PAUSE_SECONDS)
    raise AssertionError(f"waited {LIMIT_SECONDS:g} s for: {what}\n{describe()}")
