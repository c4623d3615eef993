"""Prometheus metrics, served by the driver.

Requests, rejects and rebalances are counted where Spark says that a batch is complete: every row of output carries
its measure (:mod:`streaming.measures`), Spark aggregates them (``DataFrame.observe``) and reports the result with
the progress of the batch, once, however often the batch's tasks ran. The progress is fetched as JSON once in a
while: a listener would be called for every batch, and pyspark makes some hundred calls into the JVM of each.
Groups and members are what the compacted directory topic says.
"""

import threading
from collections import Counter as Multiset
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Any

import msgspec
import prometheus_client
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from coordinator_logic.errors import Error
from coordinator_logic.records import GroupDirectoryEntry
from coordinator_logic.states import State
from streaming import measures
from streaming.errors import CannotRun
from streaming.measures import AnsweredRequest, ChangedOffsets, RejectedRecord
from streaming.session import JVM_IS_GONE

OBSERVATION = "measures"
MOST_MEASURES = 20_000
"""Of more distinct measures than this in one batch, the rarest are estimated. A batch has some hundreds."""

LATENCY_BUCKETS = (0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60, 300)
BATCH_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)

OFFSET_CHANGES = {
    "committed": "partitions whose commit was accepted, in a transaction or without one",
    "deleted": "on request, or with their topic",
    "expired": "nobody had renewed them for the retention time",
}

PHASES_UNTIL_ANSWERED = ("walCommit", "getBatch", "queryPlanning", "addBatch")
"""What happens between a batch's time and the end of its sink's work."""

DIRECTORY_POLL_SECONDS = 0.5
PROGRESS_POLL_SECONDS = 0.5
"""Spark keeps the progress of the last batches; the session is told to keep those of a much longer time."""


class CountedMeasure(msgspec.Struct):
    """How many rows of a batch had this measure; most of the journal's have none."""

    item: str | None
    count: int


class Observed(msgspec.Struct):
    """What :func:`observed` aggregates."""

    counts: list[CountedMeasure] | None = None


class SourceProgress(msgspec.Struct, rename="camel"):
    """Offsets by topic and partition: what there was, and what the batch took."""

    latest_offset: dict[str, dict[str, int]] | None = None
    end_offset: dict[str, dict[str, int]] | None = None


class Progress(msgspec.Struct, rename="camel"):
    """What Spark says of a completed batch, as far as it is used here. Durations are by phase."""

    batch_id: int
    duration_ms: dict[str, int]
    sources: list[SourceProgress] = []
    observed_metrics: dict[str, Observed] = {}


def observed(rows: DataFrame) -> DataFrame:
    """The same rows; their measures are counted on the way."""
    return rows.observe(OBSERVATION, _counted_measures().alias("counts"))


def _counted_measures() -> Column:
    # The one aggregate that gives a count per value and that observe() allows; exact while it has room.
    return sf.expr(f"approx_top_k(measure, {MOST_MEASURES}, {MOST_MEASURES})")


class Metrics:
    """The metrics of one job, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        prefix, registry = "group_coordinator", self.registry
        self._requests = Counter(f"{prefix}_requests", "Requests answered.", ["api", "error"], registry=registry)
        self._latency = Histogram(
            f"{prefix}_request_latency_seconds",
            "From a request's append to its answer, waiting for other members included.",
            ["api"],
            registry=registry,
            buckets=LATENCY_BUCKETS,
        )
        self._rejects = Counter(f"{prefix}_rejects", "Records that could not be taken.", ["cause"], registry=registry)
        self._rebalances = Counter(
            f"{prefix}_rebalances_completed", "Rebalances that ended in Stable.", registry=registry
        )
        self._phases = Histogram(
            f"{prefix}_batch_phase_seconds",
            "Duration of a batch by Spark's phases; triggerExecution is all of it.",
            ["phase"],
            registry=registry,
            buckets=BATCH_BUCKETS,
        )
        self._backlog = Gauge(
            f"{prefix}_backlog_requests", "Requests appended but not yet in a batch.", registry=registry
        )
        self._last_batch = Gauge(
            f"{prefix}_last_batch_id", "The newest completed batch; it stands still when we do.", registry=registry
        )
        self._groups = Gauge(f"{prefix}_groups", "Groups by state.", ["state"], registry=registry)
        self._members = Gauge(f"{prefix}_members", "Members of all groups.", registry=registry)
        self._offsets = Gauge(f"{prefix}_offsets", "Committed offsets of all groups.", registry=registry)
        self._changed_offsets = {
            change: Counter(f"{prefix}_offsets_{change}", f"Offsets {change}: {what}.", registry=registry)
            for change, what in OFFSET_CHANGES.items()
        }
        self.counted_batch = -1

    def count_batch(self, progress: Progress) -> None:
        """Take a completed batch into account; one that was counted already changes nothing."""
        if progress.batch_id <= self.counted_batch:
            return
        self.counted_batch = progress.batch_id
        self._last_batch.set(progress.batch_id)
        for phase, duration in progress.duration_ms.items():
            self._phases.labels(phase).observe(duration / 1000)
        self._backlog.set(sum(map(_backlog, progress.sources)))
        in_batch = sum(progress.duration_ms.get(phase, 0) for phase in PHASES_UNTIL_ANSWERED)
        for counted in progress.observed_metrics.get(OBSERVATION, Observed()).counts or []:
            if counted.item is not None:
                self._count(measures.parse(counted.item), counted.count, in_batch)

    def _count(self, measure: measures.Measure, count: int, in_batch_ms: int) -> None:
        if isinstance(measure, AnsweredRequest):
            self._requests.labels(measure.api, Error(measure.error_code).name).inc(count)
            latency = self._latency.labels(measure.api)
            for _ in range(count):
                latency.observe((measure.waited_ms + in_batch_ms) / 1000)
        elif isinstance(measure, RejectedRecord):
            self._rejects.labels(measure.cause).inc(count)
        elif isinstance(measure, ChangedOffsets):
            self._changed_offsets[measure.change].inc(count * measure.partitions)
        else:
            self._rebalances.inc(count)

    def show_groups(self, groups: Iterable[GroupDirectoryEntry]) -> None:
        """Set the gauges to what the directory says now."""
        states = Multiset(dict.fromkeys((state.value for state in State if state is not State.DEAD), 0))
        members = offsets = 0
        for group in groups:
            states[group.group_state] += 1
            members += group.members
            offsets += group.offsets
        for state, count in states.items():
            self._groups.labels(state).set(count)
        self._members.set(members)
        self._offsets.set(offsets)


def _backlog(source: SourceProgress) -> int:
    """How many records the source knew of that the batch did not take."""
    taken = source.end_offset or {}
    return sum(
        offset - taken.get(topic, {}).get(partition, 0)
        for topic, offsets in (source.latest_offset or {}).items()
        for partition, offset in offsets.items()
    )


class _ProgressReader(threading.Thread):
    """Counts the batches that the query completes."""

    def __init__(self, metrics: Metrics, query: StreamingQuery) -> None:
        super().__init__(name="progress-reader", daemon=True)
        self._metrics = metrics
        self._query: Any = query._jsq
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Count what has been completed by now, and end."""
        self._stopped.set()
        self.join()

    def run(self) -> None:
        # Without its JVM the job ends, and says so itself.
        with suppress(*JVM_IS_GONE):
            while not self._stopped.wait(PROGRESS_POLL_SECONDS):
                self._count_new_batches()
            self._count_new_batches()

    def _count_new_batches(self) -> None:
        recent = self._query.recentProgress()
        new = takewhile(lambda progress: progress.batchId() > self._metrics.counted_batch, reversed(recent))
        for text in [progress.json() for progress in new][::-1]:
            self._metrics.count_batch(msgspec.json.decode(text, type=Progress))


class _DirectoryReader(threading.Thread):
    """Follows the directory topic from its beginning and keeps the gauges up to date."""

    def __init__(self, metrics: Metrics, client_config: Mapping[str, str], topic: str, partitions: int) -> None:
        super().__init__(name="directory-reader", daemon=True)
        self._metrics = metrics
        self._partitions = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)]
        # A group id is demanded, and not used: partitions are assigned, nothing is committed.
        config = {"log_level": 3, **client_config, "group.id": "unused", "enable.auto.commit": False}
        self._consumer = Consumer(config)
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def run(self) -> None:
        groups: dict[bytes, GroupDirectoryEntry] = {}
        decode = msgspec.json.Decoder(GroupDirectoryEntry).decode
        self._metrics.show_groups([])
        self._consumer.assign(self._partitions)
        while not self._stopped.is_set():
            messages = self._consumer.consume(1000, DIRECTORY_POLL_SECONDS)
            for message in messages:
                key, value = message.key(), message.value()
                if message.error() or key is None:
                    continue
                if value is None:
                    groups.pop(key, None)
                else:
                    groups[key] = decode(value)
            if messages:
                self._metrics.show_groups(groups.values())
        self._consumer.close()


@contextmanager
def served(metrics: Metrics, port: int) -> Iterator[int]:
    """Serve the metrics on the port (0: a free one); gives the port."""
    try:
        server, thread = prometheus_client.start_http_server(port, registry=metrics.registry)
    except OSError as error:
        raise CannotRun(f"metrics-port {port} cannot be used: {error.strerror}") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def filled(
    metrics: Metrics, query: StreamingQuery, client_config: Mapping[str, str], directory: str, directory_partitions: int
) -> Iterator[None]:
    """Keep the metrics up to date while the query runs; what it has completed at the end is counted.

    ``directory`` is the topic's name, ``directory_partitions`` the number of its partitions.
    """
    readers = (
        _ProgressReader(metrics, query),
        _DirectoryReader(metrics, client_config, directory, directory_partitions),
    )
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        for reader in readers:
            reader.stop()
