"""How a job becomes the active one: it acquires the transactional id that belongs to the topics' coordinator.

A broker fences every producer with the same transactional id but the newest. So of several jobs that find no active
one, exactly one can announce itself, and a job that was paused cannot announce itself again. The announcements of all
active jobs are in one order, and so are their epochs.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from coordinator_logic.messages import LARGEST_EPOCH
from streaming.client.announced_epoch import KEY
from streaming.client.errors import CoordinatorError, CoordinatorNotAvailable, NotAuthorized
from streaming.client.librdkafka import LibrdkafkaConfig, admin_config, has_leaders, producer_config
from streaming.contract.rights.refusals import is_refusal, not_allowed
from streaming.contract.rights.table import Kind, Operation
from streaming.job.election.announcements import (
    ANNOUNCEMENT_SECONDS,
    CLIENT_ID,
    ActiveJob,
    AnnouncedStart,
    AnnouncementWatch,
    Reach,
    start_key,
)

log = logging.getLogger(__name__)

TRANSACTION_LIMIT_MS = 10_000
"""An announcement whose producer has died blocks readers until another job acquires the transactional id at most,
and never longer than this."""

REACH_LIMIT_SECONDS = 2.0
"""Brokers that take longer to tell a new client their topics count as away."""

RELEASE_LIMIT_SECONDS = 2.0
"""How long a release waits for an announcement under way, and for each answer of the brokers."""

STARTS_KEPT = 100
"""The topic forgets the starts before so many."""

ReachNow = Callable[[], Reach | None]
"""How far the job has read; None before its first complete batch."""


class Overtaken(Exception):
    """Another job has become the active one."""


class Lease:
    """The right of one job to be active: from :meth:`acquire` until another job acquires it, or until :meth:`release`.

    timeout: the limit for each answer of the broker, in seconds.
    """

    def __init__(
        self, bootstrap_servers: str, config: LibrdkafkaConfig, topic: str, transactional_id: str, timeout: float
    ) -> None:
        self._servers = bootstrap_servers
        self._config = config
        self._settings: dict[str, Any] = {
            **producer_config(bootstrap_servers, transactional_id, config),
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_LIMIT_MS,
            # Sooner after an outage than a standby loses its patience; by default, up to 10 s.
            "reconnect.backoff.max.ms": 500,
            # librdkafka would log that the producer is fenced, three times.
            "log_level": 0,
        }
        self._producer: Producer
        self._prepared: Producer | None = None
        self._topic = topic
        self._timeout = timeout
        self._announced: ActiveJob | None = None
        self.announced_at = 0.0
        """When the brokers had the last announcement, by the monotonic clock (s)."""
        self._reach_now: ReachNow = lambda: None
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._unfinished: Callable[[float], None] | None = None
        self._begun_at = 0.0
        """When the unfinished transaction began, by the monotonic clock (s)."""
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def prepare(self) -> None:
        """Connect to the brokers, so that :meth:`acquire` needs no time for it.

        librdkafka loses a question that it asks while it replaces the bootstrap connection, and repeats it after 0.5 s.
        """
        self._prepared = Producer(self._settings)
        with suppress(KafkaException):
            self._prepared.list_topics(self._topic, self._timeout)

    def acquire(self, watch: AnnouncementWatch, me: ActiveJob) -> int:
        """Become the active job in place of the one that ``watch`` has seen last; returns the epoch.

        ``me`` describes this job; its epoch is the least that it gets.

        Raises:
            Overtaken: another job was quicker.
            CoordinatorError: the broker does not answer.
        """
        seen = watch.newest
        # A producer that has been fenced stays so: each further attempt needs another one.
        self._producer, self._unfinished = self._newest_producer(), None
        # From here on the former job is fenced: what it has announced until now is all that it ever will.
        watch.look()
        newest = watch.newest
        is_new = newest is not None and (seen is None or newest.epoch != seen.epoch)
        # A job that was only slow has announced itself meanwhile, and acquires the id again.
        is_alive = seen is not None and not seen.is_released and watch.silent_seconds == 0
        if newest is not None and (is_new or is_alive):
            raise Overtaken(f"the job on {newest.host} with process id {newest.process_id} became active first")
        epoch, reach = max(1, me.epoch), Reach()
        if seen is not None:
            epoch, reach = max(epoch, seen.epoch + 1), seen.reach
        if epoch > LARGEST_EPOCH:
            # Nobody would read the announcements of this job.
            raise CoordinatorNotAvailable(
                f"an announcement on topic {self._topic} has the largest epoch there can be, so no job has written it: "
                "delete the topic's records, see docs/security.md"
            )
        announced = msgspec.structs.replace(me, epoch=epoch, is_released=False, reach=reach)
        self._announce(announced)
        self._announced, self.announced_at = announced, time.monotonic()
        return epoch

    def announce_start(self, start: AnnouncedStart) -> None:
        """Announce a start of the active job's query; its epoch is the job's from now on.

        Raises:
            Overtaken: another job is active.
            CoordinatorError: the broker does not answer.
        """
        epoch = start.start.epoch
        records: dict[bytes, bytes | None] = {start_key(epoch): msgspec.json.encode(start)}
        with self._lock:
            if self._announced is not None:
                self._announced = msgspec.structs.replace(self._announced, epoch=epoch)
                # Together: the job after a kill must not get this epoch again.
                records[KEY] = msgspec.json.encode(self._announced)
        if epoch > STARTS_KEPT:
            records[start_key(epoch - STARTS_KEPT)] = None
        self._write(records)

    def follow(self, reach_now: ReachNow) -> None:
        """Announce from now on how far the job has read; ``reach_now`` is called on the thread of :meth:`keep`."""
        with self._lock:
            self._reach_now = reach_now

    def keep(self, on_lost: Callable[[Overtaken], object]) -> None:
        """Announce this job on a thread until :meth:`release`; ``on_lost`` is called there when another job is active.

        While no broker answers, the announcements are tried again: they alone tell whether another job, which reached
        the brokers meanwhile, is active.
        """
        self._thread = threading.Thread(target=self._repeat, args=[on_lost], name="announcements", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """End the announcements, and say that another job may be active at once, unless one is already.

        While the brokers are away, that takes :data:`RELEASE_LIMIT_SECONDS` or a few times that, and nothing is said.
        """
        has_ended = self.end()
        announced, self._announced = self._announced, None
        if announced is None:
            return
        if not has_ended:
            log.warning("the end of this job was not announced: the brokers do not answer")
            return
        self._timeout = min(self._timeout, RELEASE_LIMIT_SECONDS)
        try:
            self._announce(msgspec.structs.replace(self._with_reach(announced), is_released=True))
        except (Overtaken, CoordinatorError) as failure:
            log.warning("the end of this job was not announced: %s", failure)

    def end(self) -> bool:
        """End the announcements without a word, as the end of the process would.

        Returns whether the thread has ended; one that waits for the brokers goes on for as long as they are away.
        """
        self._ending.set()
        if self._thread is None:
            return True
        self._thread.join(RELEASE_LIMIT_SECONDS)
        return not self._thread.is_alive()

    def _repeat(self, on_lost: Callable[[Overtaken], object]) -> None:
        assert self._announced is not None
        is_reported = False
        while not self._ending.wait(ANNOUNCEMENT_SECONDS):
            with self._lock:
                announced = self._announced = self._with_reach(self._announced)
            try:
                self._announce(announced)
                self.announced_at, is_reported = time.monotonic(), False
            except CoordinatorError as failure:
                # Once for each outage: it is tried again twice a second.
                log.log(logging.DEBUG if is_reported else logging.WARNING, "not announced, retrying: %s", failure)
                is_reported = True
            except Overtaken as overtaken:
                self._announced = None
                on_lost(overtaken)
                return
            except Exception:
                log.exception("not announced, retrying")

    def _with_reach(self, job: ActiveJob) -> ActiveJob:
        reach = self._reach_now()
        return job if reach is None else msgspec.structs.replace(job, reach=job.reach.extended(reach))

    def _announce(self, job: ActiveJob) -> None:
        self._write({KEY: msgspec.json.encode(job)})

    def _write(self, records: Mapping[bytes, bytes | None]) -> None:
        with self._writing:
            try:
                self._write_transaction(records)
            except Overtaken:
                if self._announced is None:
                    raise
                self._acquire_again(self._announced)
                self._write_transaction(records)

    def _newest_producer(self) -> Producer:
        """A producer that fences all others with the transactional id.

        Raises Overtaken, and CoordinatorNotAvailable if the broker does not answer.
        """
        producer, self._prepared = self._prepared or Producer(self._settings), None
        try:
            producer.init_transactions(self._timeout)
        except KafkaException as failure:
            if failure.args[0].code() == KafkaError._FENCED:
                raise Overtaken("another job became active first") from failure
            if is_refusal(failure.args[0]):
                transactional_id = str(self._settings["transactional.id"])
                refused = not_allowed(Operation.WRITE, transactional_id, Kind.TRANSACTIONAL_ID)
                raise NotAuthorized(refused) from failure
            raise CoordinatorNotAvailable(f"this job cannot become the active one: {failure}") from failure
        return producer

    def _acquire_again(self, me: ActiveJob) -> None:
        """Acquire the transactional id again if no other job has announced itself since ``me``.

        A broker also fences a producer whose transaction was open for longer than its limit: the broker or this job
        was paused, or a clock has leapt. And it fences this one if a candidate acquires the id, but has not announced
        itself; that one then finds that it was not quick enough. A producer that is stuck is replaced, too.

        Raises:
            Overtaken: one has.
            CoordinatorError: the broker does not answer; the next announcement tries again.
        """
        with AnnouncementWatch(self._servers, CLIENT_ID, self._config, self._topic, self._timeout) as watch:
            _require_newest(me, watch)
            producer = self._newest_producer()
            _require_newest(me, watch)
        self._producer, self._unfinished = producer, None
        log.warning("this job's announcement took too long; no other job is active, and it goes on")

    def _write_transaction(self, records: Mapping[bytes, bytes | None]) -> None:
        self._finish_transaction()
        try:
            self._producer.begin_transaction()
            self._begun_at = time.monotonic()
            self._unfinished = self._producer.abort_transaction
            for key, value in records.items():
                self._producer.produce(self._topic, key=key, value=value, partition=0)
        except (BufferError, KafkaException) as failure:
            raise self._meaning(failure) from failure
        self._unfinished = self._producer.commit_transaction
        self._finish_transaction()

    def _finish_transaction(self) -> None:
        """Commit or abort the transaction, if there is one; the next announcement repeats what an outage interrupts."""
        if self._unfinished is None:
            return
        try:
            self._unfinished(self._timeout)
        except KafkaException as failure:
            if failure.args[0].txn_requires_abort():
                self._unfinished = self._producer.abort_transaction
            if self._is_stuck():
                raise Overtaken("an announcement does not end, though the brokers answer") from failure
            raise self._meaning(failure) from failure
        self._unfinished = None

    def _meaning(self, failure: Exception) -> Exception:
        """What the job must conclude from a failure: whether it is fenced, or has to find out with another producer."""
        error = failure.args[0] if isinstance(failure, KafkaException) else None
        if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return NotAuthorized(not_allowed(Operation.WRITE, self._topic))
        if error is not None and (error.code() == KafkaError._FENCED or error.fatal()):
            return Overtaken("another job has become the active one")
        return CoordinatorNotAvailable(f"the active job cannot be announced: {failure}")

    def _is_stuck(self) -> bool:
        """Whether the brokers answer, and must have ended the unfinished transaction themselves by now.

        librdkafka 2.12 has waited for the end of one for good, after a broker had been paused and its clock had leapt.
        """
        if time.monotonic() - self._begun_at < 2 * TRANSACTION_LIMIT_MS / 1000:
            return False
        return has_leaders(admin_config(self._servers, CLIENT_ID, self._config), self._topic, REACH_LIMIT_SECONDS)


def _require_newest(me: ActiveJob, watch: AnnouncementWatch) -> None:
    """Raises Overtaken if another job has announced itself last, and CoordinatorError as :meth:`look` does."""
    watch.look()
    newest = watch.newest
    if newest is None or (newest.host, newest.process_id, newest.started_at) != (me.host, me.process_id, me.started_at):
        raise Overtaken("another job has become the active one")
