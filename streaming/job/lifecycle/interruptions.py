"""What the query does not survive well.

While the brokers are away, it stops; its next start gives the members of every group a full session, as a broker does
that loads a group. The same follows when a Kafka client of Spark's gives the brokers up. When the host's clock is set
back, the process ends.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streaming.embedded.stop_signals import StopRequest, end_at_once
from streaming.job.lifecycle.job_session import Report

CLIENT_TIMEOUT = "org.apache.kafka.common.errors.TimeoutException"

LEAST_STEP_SECONDS = 10.0
"""A step back by less delays a batch by as much, and a new start takes about as long."""

LONGEST_LOOK_SECONDS = 1.0
"""A look at both clocks that takes longer compares two times: the process was paused between them."""

LONGEST_ABSENCE_SECONDS = 3.0
"""An absence of the brokers up to this leaves the members half of the shortest session that Kafka allows by default."""

LOOK_SECONDS = 0.1

CLOCK_LOOK_SECONDS = 0.5


class BackwardClock:
    """A wall clock (s) that is set back. Then Spark begins no batch until it shows the time of the next one again, and
    what librdkafka waits for comes as late (confluentinc/librdkafka#2145)."""

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._last = wall() - monotonic()

    def seconds_back(self) -> float:
        """By how much the clock was set back since the last call; 0 if by less than what a batch can wait for."""
        begun = self._monotonic()
        difference = self._wall() - begun
        if self._monotonic() - begun > LONGEST_LOOK_SECONDS:
            return 0.0
        before, self._last = self._last, difference
        return before - difference if before - difference >= LEAST_STEP_SECONDS else 0.0


class BrokersAway:
    """Brokers that do not answer. No heartbeat reaches them, and clients reconnect later than the job.

    ``silence`` returns for how long no announcement of the job has reached them (s).
    """

    def __init__(self, silence: Callable[[], float]) -> None:
        self._silence = silence
        self._has_been_long = False

    def has_begun(self) -> bool:
        """Look; returns whether the query has to stop. Call it every half second."""
        before, self._has_been_long = self._has_been_long, self._silence() > LONGEST_ABSENCE_SECONDS
        # A job that was paused has announced nothing either, and does so before the next look.
        return before and self._has_been_long

    def wait(self, stopped: StopRequest) -> float:
        """Wait until the brokers answer, or until the job is told to stop; returns how long they were away (s)."""
        longest = 0.0
        while (silence := self._silence()) > longest and not stopped.is_set():
            longest = silence
            stopped.wait(LOOK_SECONDS)
        return longest


def has_given_brokers_up(failure: str) -> bool:
    """Whether a query has failed because Kafka's Java client had waited for the brokers for long enough.

    The client goes by the wall clock: a step forward ends what it waits for at once, while the brokers answer.
    """
    return CLIENT_TIMEOUT in failure


@contextmanager
def ending_if_set_back(report: Report) -> Iterator[None]:
    """End this process if the host's clock is set back within the block.

    That is like a kill, after which nothing is lost: an orderly end could wait for Kafka's clients. The clock is
    watched on a thread, because a start or a stop of the query may wait for them, too.
    """
    has_ended = threading.Event()
    clock = BackwardClock(time.time)
    watch = threading.Thread(target=_watch, args=(clock, has_ended, report), name="backward-clock", daemon=True)
    watch.start()
    try:
        yield
    finally:
        has_ended.set()


def _watch(clock: BackwardClock, has_ended: threading.Event, report: Report) -> None:
    while not has_ended.wait(CLOCK_LOOK_SECONDS):
        if step := clock.seconds_back():
            report(f"this host's clock has gone back by {step:.0f} s: start the job again")
            end_at_once(1)
