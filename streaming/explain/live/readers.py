"""Keeps a fleet current from the coordinator's topics, on threads of its own."""

import logging
import threading
import time
from collections.abc import Iterable
from typing import Protocol, Self

import msgspec
from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from coordinator_logic import apis
from coordinator_logic.messages import FindCoordinatorRequest
from streaming.client import CoordinatorClient, CoordinatorError, CoordinatorNotAvailable, RequestTimedOut
from streaming.client.directory import GroupDirectory
from streaming.client.librdkafka import admin_config, required_partition_count
from streaming.client.topic_consumer import is_end
from streaming.client.topic_reader import TopicReader
from streaming.contract.records import RecordDecoder
from streaming.explain.live.fleet import Fleet, FleetRow
from streaming.explain.live.positions import EndOffsets
from streaming.explain.offsets.log_positions import listed_offsets
from streaming.job.election.announcements import ActiveJob, AnnouncementWatch
from streaming.journal.entries import journal_entry, key_of
from streaming.journal.reader import KIND

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10.0
LOOK_SECONDS = 0.5
ENDS_SECONDS = 2.0
"""Between two requests for the ends of the logs; as often as the screen is drawn."""

READY_LOOK_SECONDS = 0.05

CLOSE_SECONDS = 2.0
"""How long the end waits for requests under way. Those that brokers which are away do not answer are left."""

NO_JOB = "no job has run on these topics yet"

PROBED_GROUP = "group-coordinator-top"
"""A group that nobody is a member of: looking up its coordinator changes nothing."""


class Pulse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The coordinator itself now.

    active: the job that has announced itself as the active one, or was the last one; None before the first look.
    problem: why the last look has found none, as a sentence. silent_seconds: for how long it has announced nothing.
    backlog: how many requests wait. answer_ms: how long the last probe waited for its answer; None if it got none.
    """

    active: ActiveJob | None = None
    problem: str = ""
    silent_seconds: float = 0.0
    backlog: int | None = None
    answer_ms: float | None = None


class LiveSource(Protocol):
    """What the views of all groups show; :class:`LiveFleet` reads it."""

    @property
    def is_complete(self) -> bool:
        """Whether all groups are known."""

    def rows(self) -> list[FleetRow]:
        """A row for each group."""

    def pulse(self) -> Pulse:
        """The coordinator itself."""


class LiveFleet:
    """All groups as of now, between the begin and the end of a ``with`` block.

    probe_seconds: how often to send a request that measures the time of an answer, each of which makes an idle job run
    a batch; 0 for never.
    """

    def __init__(self, client: CoordinatorClient, probe_seconds: float) -> None:
        self._client = client
        self._probe_seconds = probe_seconds
        self._fleet = Fleet()
        self._lock = threading.Lock()
        self._ends: EndOffsets = {}
        self._pulse = Pulse()
        self._ending = threading.Event()
        self._journal_is_read = threading.Event()
        servers, config, topics = client.bootstrap_servers, client.config, client.topics
        self._directory = GroupDirectory(servers, topics.directory, client.client_id, config)
        self._journal = TopicReader(servers, topics.journal, client.client_id, config, self._read_journal)
        self._threads = [
            threading.Thread(target=work, name=f"live-{work.__name__}", daemon=True)
            for work in (self._follow_ends, self._follow_active_job, self._probe)
        ]

    def __enter__(self) -> Self:
        self._directory.start()
        self._journal.start()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ending.set()
        self._directory.close()
        self._journal.close()
        deadline = time.monotonic() + CLOSE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    @property
    def is_complete(self) -> bool:
        """Whether the directory was read to its end once."""
        return self._directory.is_complete

    def wait_until_read(self, timeout: float) -> None:
        """Wait until the groups, the journal's last minutes, the ends of the logs and the active job are known.

        timeout: in seconds. Raises CoordinatorError if a topic does not exist, or is not read in time.
        """
        deadline = time.monotonic() + timeout
        while not (self.is_complete and self._journal_is_read.is_set() and self.pulse().active is not None):
            if problem := self.pulse().problem:
                raise CoordinatorNotAvailable(problem)
            if time.monotonic() >= deadline:
                raise RequestTimedOut(f"the coordinator's topics were not read within {timeout:g} s")
            self._ending.wait(READY_LOOK_SECONDS)
        self._read_ends(self._new_admin())

    def rows(self) -> list[FleetRow]:
        """A row for each group."""
        entries = self._directory.entries()
        with self._lock:
            return self._fleet.rows(entries, time.time_ns() // 1_000_000, self._ends)

    def pulse(self) -> Pulse:
        """The coordinator itself, as of the last looks."""
        with self._lock:
            return self._pulse

    def _read_journal(self, consumer: Consumer) -> None:
        topic = self._client.topics.journal
        begins = _begins(consumer, topic, time.time_ns() // 1_000_000 - self._fleet.window_ms)
        consumer.assign(begins)
        decoder = RecordDecoder(topic, KIND, journal_entry, key_of)
        unfinished = {begin.partition for begin in begins}
        for record in self._journal.records(consumer):
            error = record.error()
            if error is not None:
                if is_end(record):
                    unfinished.discard(record.partition() or 0)
                    if not unfinished:
                        self._journal_is_read.set()
                else:
                    log.warning("topic %s cannot be read at the moment, librdkafka retries: %s", topic, error.str())
            elif (entry := decoder.read(record)) is not None:
                with self._lock:
                    self._fleet.note(entry)

    def _new_admin(self) -> AdminClient:
        return AdminClient(admin_config(self._client.bootstrap_servers, self._client.client_id, self._client.config))

    def _follow_ends(self) -> None:
        admin = self._new_admin()
        while not self._ending.wait(ENDS_SECONDS):
            self._read_ends(admin)

    def _read_ends(self, admin: AdminClient) -> None:
        active = self.pulse().active
        read_until = {} if active is None else active.reach.read_until
        requests = {(self._client.topics.requests, partition): offset for partition, offset in read_until.items()}
        with self._lock:
            wanted = self._fleet.partitions()
        ends = end_offsets(admin, {*wanted, *requests})
        waiting = [end - requests[place] for place, end in ends.items() if place in requests]
        with self._lock:
            self._ends = ends
        self._note(backlog=max(0, sum(waiting)) if waiting else None)

    def _follow_active_job(self) -> None:
        client = self._client
        topic = client.topics.coordinators
        while not self._ending.is_set():
            try:
                with AnnouncementWatch(
                    client.bootstrap_servers, client.client_id, client.config, topic, TIMEOUT_SECONDS
                ) as watch:
                    while not self._ending.is_set():
                        watch.look()
                        problem = "" if watch.newest is not None else NO_JOB
                        self._note(active=watch.newest, problem=problem, silent_seconds=watch.silent_seconds)
                        self._ending.wait(LOOK_SECONDS)
            except CoordinatorError as failure:
                log.debug("the active job is not known: %s", failure)
                self._note(problem=failure.message)
                self._ending.wait(LOOK_SECONDS)

    def _probe(self) -> None:
        if not self._probe_seconds:
            return
        request = FindCoordinatorRequest(coordinator_keys=[PROBED_GROUP])
        while not self._ending.wait(self._probe_seconds):
            began = time.monotonic()
            try:
                self._client.ask(apis.FIND_COORDINATOR, PROBED_GROUP, request).result()
            except CoordinatorError:
                self._note(answer_ms=None)
            else:
                self._note(answer_ms=1000 * (time.monotonic() - began))

    def _note(self, **changes: object) -> None:
        with self._lock:
            self._pulse = msgspec.structs.replace(self._pulse, **changes)


def end_offsets(admin: AdminClient, partitions: Iterable[tuple[str, int]]) -> EndOffsets:
    """The end offsets of the partitions, by topic and partition, without those that do not exist or do not answer."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    ends = listed_offsets(admin, partitions, latest, TIMEOUT_SECONDS, IsolationLevel.READ_COMMITTED)
    return {(topic, partition): end for (topic, partition), end in ends.items()}


def _begins(consumer: Consumer, topic: str, since_ms: int) -> list[TopicPartition]:
    """Return where to begin to read each partition: at the first record since a time, or at the end as it is now."""
    count = required_partition_count(consumer, topic, TIMEOUT_SECONDS)
    wanted = [TopicPartition(topic, partition, since_ms) for partition in range(count)]
    ends = {each.partition: consumer.get_watermark_offsets(each, TIMEOUT_SECONDS)[1] for each in wanted}
    found = consumer.offsets_for_times(wanted, TIMEOUT_SECONDS)
    # Without a record since then, librdkafka would look the end up later, and miss what comes before that.
    return [
        TopicPartition(topic, each.partition, each.offset if each.offset >= 0 else ends[each.partition])
        for each in found
    ]
