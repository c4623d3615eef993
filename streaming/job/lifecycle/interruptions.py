"""What the query does not survive well: it stops, and starts again when that is over.

A start gives the members of every group a full session, as a broker does that loads a group.
"""

import time
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import Protocol

from pyspark.sql.streaming.query import StreamingQuery

from streaming.job.lifecycle.job_session import JobSession, Report
from streaming.job.spark_internals.java_objects import wall_clock_seconds

__all__ = ["BackwardClock", "BrokersAway", "Interruption", "Interruptions"]

LEAST_STEP_SECONDS = 2.0
"""A step back by less delays a batch by as much, which is shorter than a new start of the query."""

CLOCK_SETTLING_SECONDS = 2.0
"""How long after its host's clock was set back the query starts again: Kafka's clients wait by that clock."""

LONGEST_ABSENCE_SECONDS = 3.0
"""An absence of the brokers up to this leaves the members half of the shortest session that Kafka allows by default."""

LOOK_SECONDS = 0.1


class Interruption(Protocol):
    """Something that interrupts the query."""

    def has_begun(self) -> bool:
        """Look; returns whether the query has to stop. Call it every half second."""

    def wait(self, stopped: Event) -> str:
        """Wait until it is over, or until the job is told to stop; returns what has happened, for the user."""


class BackwardClock:
    """A wall clock (s) that is set back: Spark begins no batch until it shows the time of the next one again."""

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._last = self._difference()
        self._step = 0.0

    def has_begun(self) -> bool:
        before, self._last = self._last, self._difference()
        self._step = before - self._last
        return self._step >= LEAST_STEP_SECONDS

    def wait(self, stopped: Event) -> str:
        stopped.wait(CLOCK_SETTLING_SECONDS)
        return f"this host's clock has gone back by {self._step:.0f} s"

    def _difference(self) -> float:
        return self._wall() - self._monotonic()


class BrokersAway:
    """Brokers that do not answer. No heartbeat reaches them, and clients reconnect later than the job.

    ``silence`` returns for how long no announcement of the job has reached them (s).
    """

    def __init__(self, silence: Callable[[], float]) -> None:
        self._silence = silence
        self._has_been_long = False

    def has_begun(self) -> bool:
        before, self._has_been_long = self._has_been_long, self._silence() > LONGEST_ABSENCE_SECONDS
        # A job that was paused has announced nothing either, and does so before the next look.
        return before and self._has_been_long

    def wait(self, stopped: Event) -> str:
        longest = 0.0
        while (silence := self._silence()) > longest and not stopped.is_set():
            longest = silence
            stopped.wait(LOOK_SECONDS)
        return f"the brokers were away for {longest:.0f} s"


class Interruptions:
    """What may interrupt a session's query."""

    def __init__(self, session: JobSession) -> None:
        self._all: tuple[Interruption, ...] = (
            BackwardClock(partial(wall_clock_seconds, session.spark)),
            BrokersAway(lambda: session.candidate.seconds_unannounced),
        )
        self.over: str | None = None
        """The interruption that has ended, for the user."""

    def end(self, query: StreamingQuery, stopped: Event, report: Report) -> bool:
        """Stop the query if something interrupts it, and wait until that is over; returns whether it did."""
        interruption = next((each for each in self._all if each.has_begun()), None)
        if interruption is None:
            return False
        report("the query is interrupted, and starts again soon")
        query.stop()
        self.over = interruption.wait(stopped)
        return True
