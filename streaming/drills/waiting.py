"""Waits for a condition, and why a drill could not be finished."""

import time
from collections.abc import Callable

PAUSE_SECONDS = 0.05


class DrillFailed(Exception):
    """A step of a drill failed, or something that it waits for did not happen; the message names it."""


class DrillSkipped(Exception):
    """The drill cannot be done on this machine; the message says what is missing."""


def await_until(condition: Callable[[], bool], what: Callable[[], str], seconds: float) -> None:
    """Check a condition again and again until it holds, for at most ``seconds``.

    what: says what is missing, for the message. Raises DrillFailed, and what ``condition`` raises.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise DrillFailed(f"not within {seconds:g} s: {what()}")
        time.sleep(PAUSE_SECONDS)
