"""Waits for a condition that nothing reports."""

import time
from collections.abc import Callable
from contextlib import suppress

LIMIT_SECONDS = 120.0
"""Long enough for whatever takes a few seconds, on a machine that is ten times as slow."""


def wait_until(
    condition: Callable[[], object],
    what: str,
    limit: float = LIMIT_SECONDS,
    *,
    describe: Callable[[], str] = str,
    ignore: tuple[type[Exception], ...] = (),
    pause: float = 0.01,
) -> None:
    """Check a condition every ``pause`` seconds until it holds, for at most ``limit`` seconds.

    what: the condition in words. describe: returns the state to show if it never holds. ignore: exceptions of the
    condition that mean that it does not hold yet. Raises AssertionError with both descriptions at the limit.
    """
    deadline = time.monotonic() + limit
    while True:
        with suppress(*ignore):
            if condition():
                return
        assert time.monotonic() < deadline, f"not within {limit:g} s: {what}\n{describe()}"
        time.sleep(pause)
