"""Time that a test makes: a clock that it sets, and an event loop in which waiting takes none of the machine's time."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["Clock", "VirtualTimeLoop", "run_in_virtual_time"]

T = TypeVar("T")


class Clock:
    """A clock that a test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop that leaps to the next timer instead of waiting for it. It serves timers and tasks, but no sockets."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_LeapingSelector(self.pass_time))

    def time(self) -> float:
        """The virtual time in seconds."""
        return self._now

    def pass_time(self, seconds: float) -> None:
        """Let time pass, as work does that keeps the loop busy."""
        self._now += seconds


class _LeapingSelector(selectors.SelectSelector):
    def __init__(self, leap: Any) -> None:
        super().__init__()
        self._leap = leap

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "the loop waits for something that is no timer"
        self._leap(timeout)
        return []


def run_in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)
