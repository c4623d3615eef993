"""Repeats a call on a thread of its own."""

import threading
from collections.abc import Callable

from tests.support.waiting import LIMIT_SECONDS


class BackgroundLoop:
    """Calls ``turn`` repeatedly until :meth:`end`. An exception ends the loop, too, and is kept in ``failure``.

    pause: how long it waits before each call, in seconds.
    """

    def __init__(self, turn: Callable[[], object], pause: float = 0.0) -> None:
        self._turn = turn
        self._pause = pause
        self._ended = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ended.wait(self._pause):
                self._turn()
        except BaseException as failure:
            self.failure = failure

    def end(self) -> None:
        """Let the current call finish, and end the loop."""
        self._ended.set()
        self._thread.join(LIMIT_SECONDS)
        assert not self._thread.is_alive(), "a loop did not end"
