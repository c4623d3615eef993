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
from streaming.client import CoordinatorClient, CoordinatorError
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

CLOSE_SECONDS = 2.0
"""How long the end waits for requests under way. Those that brokers which are away do not answer are left."""

PROBED_GROUP = "group-coordinator-top"
"""A group that nobody is a member of: looking up its coordinator changes nothing."""


class Pulse(msgspec.Struct, frozen=True, kw_only=True):
    """The coordinator itself now.

    active: the job that has announced itself as the active one, or was the last one; None before the first look.
    silent_seconds: for how long it has announced nothing. backlog: how many requests wait. answer_ms: how long the
    last probe waited for its answer; None if it got none.
    """

    active: ActiveJob | None = None
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
        count = required_partition_count(consumer, topic, TIMEOUT_SECONDS)
        since = time.time_ns() // 1_000_000 - self._fleet.window_ms
        wanted = [TopicPartition(topic, partition, since) for partition in range(count)]
        ends = {each.partition: consumer.get_watermark_offsets(each, TIMEOUT_SECONDS)[1] for each in wanted}
        found = consumer.offsets_for_times(wanted, TIMEOUT_SECONDS)
        # Without a record since then, librdkafka would look the end up later, and miss what comes before that.
        begins = [each.offset if each.offset >= 0 else ends[each.partition] for each in found]
        consumer.assign(
            [TopicPartition(topic, each.partition, begin) for each, begin in zip(found, begins, strict=True)]
        )
        decoder = RecordDecoder(topic, KIND, journal_entry, key_of)
        for record in self._journal.records(consumer):
            error = record.error()
            if error is not None:
                if not is_end(record):
                    log.warning("topic %s cannot be read at the moment, librdkafka retries: %s", topic, error.str())
            elif (entry := decoder.read(record)) is not None:
                with self._lock:
                    self._fleet.note(entry)

    def _follow_ends(self) -> None:
        admin = AdminClient(admin_config(self._client.bootstrap_servers, self._client.client_id, self._client.config))
        while not self._ending.wait(ENDS_SECONDS):
            with self._lock:
                wanted = self._fleet.partitions()
            ends = end_offsets(admin, wanted)
            with self._lock:
                self._ends = ends

    def _follow_active_job(self) -> None:
        client, topics = self._client, self._client.topics
        admin = AdminClient(admin_config(client.bootstrap_servers, client.client_id, client.config))
        while not self._ending.wait(LOOK_SECONDS):
            try:
                with AnnouncementWatch(
                    client.bootstrap_servers, client.client_id, client.config, topics.coordinators, TIMEOUT_SECONDS
                ) as watch:
                    while not self._ending.wait(LOOK_SECONDS):
                        watch.look()
                        active = watch.newest
                        read_until = {} if active is None else active.reach.read_until
                        ends = end_offsets(admin, {(topics.requests, partition) for partition in read_until})
                        backlog = sum(end - read_until[partition] for (_, partition), end in ends.items())
                        self._note(
                            active=active,
                            silent_seconds=watch.silent_seconds,
                            backlog=max(0, backlog) if ends else None,
                        )
            except CoordinatorError as failure:
                log.debug("the active job is not known: %s", failure)

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
