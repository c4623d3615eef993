"""Watch the topics while the query runs."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, replace
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.contract.topics import TopicNames
from streaming.job.topics.append_times import AppendTimeComparison, NewestAppend, newest_appends
from streaming.job.topics.inspection import (
    TopicInspection,
    describe_topics,
    inspect_topics,
    partition_counts,
    text_of_id,
)
from streaming.job.topics.layout import Partitions, TopicLayout
from streaming.job.topics.partition_leaders import list_offsets

PARTITIONS_SECONDS = 1.0
"""The interval of :meth:`CoordinatorTopicsWatch.check`: a small request for each topic, two for the offsets. A client
that starts after the responses topic has grown may choose a new partition at once."""

SETTINGS_SECONDS = 60.0
"""The interval of the checks of all settings and of the id."""

ADMIN_LIMIT_SECONDS = 5.0
"""The limit of a request."""

STOP_SECONDS = 1.0
"""How long a stop waits for a request in flight. Brokers that answer have answered by then."""

MISSING_LIMIT_SECONDS = 10.0
"""How long a topic may be missing: a broker that starts may not know all topics yet."""

NEXT_START = "the next start of the job creates topics that are missing, and says what else is needed"


class CoordinatorTopicsWatch:
    """The topics as they are now. A thread updates it between :meth:`start` and :meth:`stop`, see :func:`watching`."""

    def __init__(
        self, client_config: Mapping[str, str], names: TopicNames, layout: TopicLayout, found: TopicInspection
    ) -> None:
        self.found = found
        """The newest inspection; its partitions are newer than its problems and risks."""
        self.failure: str | None = None
        """Why the job cannot go on with these topics; None while it can."""
        self.clocks = AppendTimeComparison()
        """How the brokers' clocks differ from the driver's."""
        settings: dict[str, Any] = {
            "log_level": 0,
            **client_config,
            "error_cb": lambda _: None,
            # A broker with auto.create.topics.enable must not create a deleted topic because the watch asks for it.
            "allow.auto.create.topics": False,
        }
        self.on_ends: Callable[[Mapping[int, int]], object] = lambda _: None
        """Called on the thread with the ends of the requests' partitions, whenever they were read."""
        self._admin = AdminClient(settings)
        self._names = names
        self._layout = layout
        self._reported = {*found.problems, *found.risks}
        self._missing_since: float | None = None
        self._ends: dict[int, int] = {}
        self._compared: dict[int, int] | None = None
        self._newest: dict[int, NewestAppend] = {}
        self._look_is_due = True
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="topic-watch", daemon=True)

    def has_grown(self, partitions: Partitions) -> bool:
        """Whether one of the topics has more partitions than these. A broker that lags behind reports fewer."""
        now = self.found.partition_counts(self._names)
        return any(count > before for count, before in zip(astuple(now), astuple(partitions), strict=True))

    def news(self) -> list[str]:
        """The problems and risks that appeared since the start or the last call."""
        current = [*self.found.problems, *self.found.risks]
        new = [line for line in current if line not in self._reported]
        self._reported = set(current)
        return new

    def look(self, missing_limit_seconds: float | None = None) -> None:
        """Check ids and partitions now. Brokers that do not answer change nothing.

        A topic may be missing for ``missing_limit_seconds``, by default for :data:`MISSING_LIMIT_SECONDS`.
        """
        limit = MISSING_LIMIT_SECONDS if missing_limit_seconds is None else missing_limit_seconds
        with suppress(KafkaException):
            self._look_at_partitions(limit)

    def check(self) -> None:
        """Compare partitions, offsets and clocks, and :meth:`look` only if a topic has changed or may have.

        Only a description has a topic's id, and every description leaks memory, see :func:`describe_topics`: those of
        six topics, every second, 50 MiB a day. A topic that was created again without being missed has fewer records
        than before; if it already has as many again, or had none, the check of the settings notices.
        """
        if not self._look_is_due:
            with suppress(KafkaException):
                known = self.found.partitions
                self._look_is_due = partition_counts(self._admin, known, ADMIN_LIMIT_SECONDS) != known
        if self._missing_since is None:
            with suppress(KafkaException):
                self._compare_offsets()
        if self._look_is_due:
            self.look()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a request in flight that the brokers do not answer is left to it."""
        self._stopped.set()
        self._thread.join(STOP_SECONDS)

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        settings_due = time.monotonic() + SETTINGS_SECONDS
        while not self._stopped.wait(PARTITIONS_SECONDS):
            self.check()
            if time.monotonic() >= settings_due:
                with suppress(KafkaException):
                    self._look_at_settings()
                settings_due = time.monotonic() + SETTINGS_SECONDS

    def _look_at_partitions(self, missing_limit_seconds: float) -> None:
        self._look_is_due = True
        described = describe_topics(self._admin, list(self.found.partitions), ADMIN_LIMIT_SECONDS)
        missing = [name for name in self.found.partitions if name not in described]
        if missing:
            self._missing_since = self._missing_since or time.monotonic()
            if time.monotonic() - self._missing_since >= missing_limit_seconds:
                self.failure = f"deleted while the job was running: {', '.join(missing)}; {NEXT_START}"
            return
        self._missing_since = None
        self._compare_id(text_of_id(described[self._names.requests].topic_id))
        self.found = replace(
            self.found, partitions={name: len(description.partitions) for name, description in described.items()}
        )
        self._look_is_due = False

    def _compare_id(self, topic_id: str | None) -> None:
        requests = self._names.requests
        if self.found.topic_ids.get(requests) not in (None, topic_id):
            self.failure = f"topic {requests} was deleted and created again while the job was running; {NEXT_START}"

    def _compare_offsets(self) -> None:
        requests = self._names.requests
        partitions = range(self.found.partitions[requests])
        begun_ms = time.time_ns() // 1_000_000
        spec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        # The query reads no further than to the first transaction that is open.
        committed = IsolationLevel.READ_COMMITTED
        latest = list_offsets(self._admin, requests, partitions, spec, ADMIN_LIMIT_SECONDS, committed)
        ends = {partition: found.offset for partition, found in latest.items()}
        self._look_is_due |= any(end < self._ends.get(partition, 0) for partition, end in ends.items())
        self._ends = ends
        self.on_ends(ends)
        if ends != self._compared:
            self._newest = newest_appends(self._admin, requests, ends, ADMIN_LIMIT_SECONDS)
            self._compared = ends
        self.clocks.update(self._newest, begun_ms, time.time_ns() // 1_000_000)

    def _look_at_settings(self) -> None:
        found = inspect_topics(self._admin, self._names, self._layout, ADMIN_LIMIT_SECONDS)
        if not found.missing:
            self._compare_id(found.topic_ids.get(self._names.requests))
            self.found = replace(found, topic_ids=self.found.topic_ids)


@contextmanager
def watching(watch: CoordinatorTopicsWatch) -> Iterator[CoordinatorTopicsWatch]:
    """Keep the watch up to date within the block."""
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()
