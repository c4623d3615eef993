"""Says at once what a program waits for, and how long it does at most.

Nothing is said where nobody listens: the Python client waits in silence.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

KAFKA, COORDINATOR = "Kafka", "an answer of the coordinator"

NOTICE_SECONDS = 1.0
"""A wait that is shorter is not worth a line."""


class _Announcer:
    """Reports each kind of wait once. ``servers``: the brokers' addresses, if they are known."""

    def __init__(self, report: Callable[[str], object], servers: str | None) -> None:
        self._report = report
        self._servers = servers
        self._begun: set[str] = set()
        self._lock = threading.Lock()
        self.is_open = True

    def begin(self, what: str, seconds: float | None) -> Callable[[], object]:
        """Begin a wait; returns what ends it. Any thread may call both."""
        with self._lock:
            if what in self._begun:
                return _nothing
            self._begun.add(what)
        timer = threading.Timer(NOTICE_SECONDS, self._announce, [what, seconds])
        timer.daemon = True
        timer.start()

        def end() -> None:
            timer.cancel()
            with self._lock:
                self._begun.discard(what)

        return end

    def _announce(self, what: str, seconds: float | None) -> None:
        place = f" at {self._servers}" if what == KAFKA and self._servers else ""
        limit = "" if seconds is None else f", {seconds:g} s"
        if self.is_open:
            self._report(f"waiting for {what}{place}{limit}")


_announcers: list[_Announcer] = []


@contextmanager
def announcing_waits(report: Callable[[str], object], servers: str | None) -> Iterator[None]:
    """Report waits that last longer than a second until the block ends; a block within another one changes nothing."""
    if _announcers:
        yield
        return
    announcer = _Announcer(report, servers)
    _announcers.append(announcer)
    try:
        yield
    finally:
        announcer.is_open = False
        _announcers.remove(announcer)


def begin_wait(what: str, seconds: float | None) -> Callable[[], object]:
    """Begin a wait of ``seconds`` at most; returns what ends it. ``what``: KAFKA or COORDINATOR."""
    announcers = tuple(_announcers)
    return announcers[0].begin(what, seconds) if announcers else _nothing


@contextmanager
def waiting_for(what: str, seconds: float | None) -> Iterator[None]:
    """The same for a block."""
    end = begin_wait(what, seconds)
    try:
        yield
    finally:
        end()


def _nothing() -> None:
    """End a wait that nobody listens to."""
