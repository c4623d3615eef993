"""Waits for a condition, at most so long."""

import time
from collections.abc import Callable

from streaming.drills.errors import DrillFailed

PAUSE_SECONDS = 0.05


def await_until(condition: Callable[[], bool], what: Callable[[], str], seconds: float) -> None:
    """Check a condition again and again until it holds, for at most ``seconds``.

    what: says what is missing, for the message. Raises DrillFailed, and what ``condition`` raises.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise DrillFailed(f"not within {seconds:g} s: {what()}")
        time.sleep(PAUSE_SECONDS)
