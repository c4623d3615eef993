"""A job that wants to be the active one of its topics: it finds out whether another one is, waits, and takes over."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version

from streaming.client.errors import CoordinatorError
from streaming.contract.errors import BrokersFailed, CannotRun
from streaming.embedded.process_identity import has_ended, process_identity
from streaming.job.election.announcements import (
    ANNOUNCEMENT_SECONDS,
    CLIENT_ID,
    ActiveJob,
    AnnouncedStart,
    AnnouncementWatch,
    Reach,
)
from streaming.job.election.lease import Lease, Overtaken, ReachNow
from streaming.job.group_batch.starts import Start

LEASE_SECONDS = 3 * ANNOUNCEMENT_SECONDS
"""An active job that has not announced itself for this long has lost its place to the first job that acquires it."""

LOOK_SECONDS = 0.1
ANSWER_LIMIT_SECONDS = 10.0

START_LIMIT_SECONDS = 60.0
"""How long a start tries to announce itself: it may come right after an outage."""


class Candidate:
    """A job's way to become the active one. Not thread-safe."""

    def __init__(self, watch: AnnouncementWatch, lease: Lease) -> None:
        self._watch = watch
        self._lease = lease
        self._lost = threading.Event()
        self._why_lost = ""
        self.overtaken: ActiveJob | None = None
        """The job that was active before this one and has not released its place."""
        self.epoch = 0
        self._query_starts = 0
        self.reach_before = Reach()
        """How far the jobs before this one have announced to have read."""

    @property
    def failure(self) -> str | None:
        """Why this job is no longer the active one; None while it is."""
        return self._why_lost if self._lost.is_set() else None

    def is_free(self) -> bool:
        """Look; returns whether no job is active. While no broker answers, nobody can tell, and it is not."""
        with suppress(CoordinatorError):
            self._watch.look()
            newest = self._watch.newest
            return self._watch.is_free(LEASE_SECONDS) or (newest is not None and has_ended(newest.process))
        return False

    def require_free(self) -> None:
        """Wait until it is known whether another job is active.

        Raises:
            CannotRun: one is; the message names it.
        """
        deadline = time.monotonic() + 2 * LEASE_SECONDS
        while not self.is_free():
            if self._watch.silent_seconds == 0.0 and time.monotonic() > deadline:
                raise CannotRun(f"{self._other()}: stop it first, or start this one with --standby")
            time.sleep(LOOK_SECONDS)

    def wait_until_free(self, report: Callable[[str], None], meanwhile: Callable[[], object] = lambda: None) -> None:
        """Wait until no other job is active, however long that takes; ``meanwhile`` is called often."""
        report(f"standby: {self._other()}")
        self._lease.prepare()
        while not self.is_free():
            meanwhile()
            self._watch.wait(LOOK_SECONDS)

    def become_active(self, least_epoch: int = 1) -> bool:
        """Become the active job; returns False if another candidate was quicker.

        Its ``epoch`` is higher than that of every job that was announced, and at least ``least_epoch``.

        Raises:
            BrokersFailed: the brokers do not answer, or do not let this job announce itself.
        """
        me = ActiveJob(
            epoch=least_epoch,
            host=socket.gethostname(),
            process_id=os.getpid(),
            started_at=time.time_ns() // 1_000_000,
            version=version("spark-group-coordinator"),
            process=process_identity(),
        )
        before = self._watch.newest
        try:
            self.epoch = self._lease.acquire(self._watch, me)
        except Overtaken:
            return False
        except CoordinatorError as failure:
            raise BrokersFailed(failure.message) from failure
        self._lease.keep(self._lose)
        self._watch.close()
        self.reach_before = Reach() if before is None else before.reach
        self.overtaken = None if before is None or before.is_released else before
        return True

    def starts(self, topic_id: str | None) -> list[Start]:
        """The announced starts on the topic of requests with this id, by epoch, before this job became active."""
        return self._watch.starts(topic_id)

    def next_epoch(self) -> int:
        """The epoch of the next start of the query: the first has that of the job, each further one a higher one."""
        return self.epoch + self._query_starts

    def announce_start(self, topic_id: str | None, start: Start) -> None:
        """Announce a start of the query on the topic of requests with this id.

        Raises:
            BrokersFailed: the brokers do not answer.
            CannotRun: another job is active.
        """
        self._query_starts += 1
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while True:
            try:
                self._lease.announce_start(AnnouncedStart(topic_id, start))
            except Overtaken as overtaken:
                raise CannotRun(str(overtaken)) from overtaken
            except CoordinatorError as failure:
                if time.monotonic() > deadline:
                    raise BrokersFailed(failure.message) from failure
                time.sleep(LOOK_SECONDS)
            else:
                return

    def follow(self, reach_now: ReachNow) -> None:
        """Announce how far the job has read, as :meth:`Lease.follow` does."""
        self._lease.follow(reach_now)

    def silence(self) -> float:
        """The time since the brokers had this job's last announcement; 0 when it is no longer the active one."""
        return 0.0 if self._lost.is_set() else time.monotonic() - self._lease.announced_at

    def release(self) -> None:
        """Let another job become the active one at once."""
        self._lease.release()

    def _other(self) -> str:
        job = self._watch.newest
        if job is None:
            return "no broker says which job is active"
        since = datetime.fromtimestamp(job.started_at / 1000, UTC).isoformat(timespec="seconds")
        return f"the job on {job.host} with process id {job.process_id} has been active since {since}"

    def _lose(self, overtaken: Overtaken) -> None:
        self._why_lost = str(overtaken)
        self._lost.set()


@contextmanager
def candidate(config: Mapping[str, str], topic: str) -> Iterator[Candidate]:
    """A candidate for the jobs that announce themselves on ``topic``; the end of the block ends its announcements.

    Only :meth:`Candidate.release` says that the job has stopped in order, and has announced its last batch. After a
    start that was refused, or a query that has failed, the next job has to find out what was read.

    config: librdkafka's settings, with ``bootstrap.servers``.

    Raises:
        BrokersFailed: the brokers do not answer.
    """
    servers = config["bootstrap.servers"]
    try:
        watching = AnnouncementWatch(servers, CLIENT_ID, dict(config), topic, ANSWER_LIMIT_SECONDS)
    except CoordinatorError as failure:
        raise BrokersFailed(failure.message) from failure
    with watching as watch:
        lease = Lease(servers, dict(config), topic, topic, ANSWER_LIMIT_SECONDS)
        try:
            yield Candidate(watch, lease)
        finally:
            lease.end()
