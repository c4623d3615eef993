"""The job's Prometheus metrics.

Requests, rejects, rebalances and offsets are counted exactly, once per completed batch, however often the batch's
tasks ran: Spark collects the totals of the rows' measures (:mod:`streaming.job.measures`) with ``DataFrame.observe``
and reports them with the batch's progress. :mod:`streaming.job.monitoring.readers` polls the progress as JSON: a
listener would be called for every batch, and each call costs pyspark a hundred calls into the JVM. Groups, members and
offsets are read from the directory topic.
"""

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

import msgspec
from prometheus_client import Counter, Gauge, Histogram
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from coordinator_logic.errors import Error
from streaming.contract.process_metrics import process_registry
from streaming.contract.record_metrics import show_skipped_records
from streaming.job.measures import COMMIT, RESET, Totals
from streaming.job.monitoring.backlog import Backlog, BatchSize, backlog_after
from streaming.job.monitoring.clock_skew import MAY_BE_PARKED, ClockComparison
from streaming.job.monitoring.counted_histogram import CountedHistogram
from streaming.job.monitoring.group_gauges import GroupGauges

PREFIX = "group_coordinator"
OBSERVATION = "measures"
LATENCY_BUCKETS = (0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60, 300)
BATCH_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)

COUNTERS = {
    "rebalances_completed": "Rebalances that ended in Stable.",
    "offsets_committed": "Partitions whose offset commit was accepted, inside or outside of a transaction.",
    "offsets_deleted": "Partitions whose offset was deleted, by a request or with its topic.",
    "offsets_expired": "Partitions whose offset was not committed again within the retention time.",
}

WARM_BATCHES = 60
"""After so many batches of a new JVM, answers take at most about twice as long as later: Java has compiled what each
batch runs. A job that stands by for a minute runs more of them."""

PHASES_UNTIL_ANSWERED = ("walCommit", "getBatch", "queryPlanning", "addBatch")
"""Spark's phases between a batch's time and the end of its sink's work."""


class Observed(msgspec.Struct):
    """What :func:`observe_measures` has Spark report: the totals of every record batch of a batch, encoded."""

    totals: list[bytes] = []


class StateProgress(msgspec.Struct, rename="camel"):
    """How long the tasks of the operator have taken together, ms: to call the groups, and to commit their states."""

    all_updates_time_ms: int = 0
    all_removals_time_ms: int = 0
    commit_time_ms: int = 0


class Progress(BatchSize, rename="camel"):
    """The fields used of Spark's report of a completed batch."""

    observed_metrics: dict[str, Observed] = msgspec.field(default_factory=dict)
    state_operators: list[StateProgress] = msgspec.field(default_factory=list)
    timestamp: datetime | None = None
    """When the trigger fired that ran the batch."""

    @property
    def earliest_time(self) -> int | None:
        """The batch's time is not earlier than this (ms since the epoch); None for a batch that has run again.

        Spark takes the time when it has looked for the end of the log. A batch that runs again has its old time, and
        Spark does not look again.
        """
        if "latestOffset" not in self.duration_ms or self.timestamp is None:
            return None
        return round(self.timestamp.timestamp() * 1000)

    @property
    def is_followed(self) -> bool:
        """Whether there may be more in the log that a batch can read now.

        A batch reads at most ``max-requests-per-batch``. Before one that runs again, Spark did not look.
        """
        return self.unread > 0 or self.earliest_time is None

    @property
    def read_until(self) -> dict[int, int]:
        """The end of the batch in each partition of the requests."""
        topics = [offsets for source in self.sources for offsets in (source.end_offset or {}).values()]
        return {int(partition): end for offsets in topics for partition, end in offsets.items()}

    def totals(self) -> list[Totals]:
        """The totals of the record batches."""
        return [Totals.decoded(each) for each in self.observed_metrics.get(OBSERVATION, Observed()).totals]


def observe_measures(rows: DataFrame) -> DataFrame:
    """Return the same rows, and have Spark report the totals of their measures with each batch.

    There is one aggregate, which ignores nulls, because Spark interprets every aggregate for every row of output.
    """
    return rows.observe(OBSERVATION, sf.collect_list("measures").alias("totals"))


class Metrics:
    """The metrics of one job, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = process_registry(PREFIX, ("pyspark",))
        counter = partial(Counter, namespace=PREFIX, registry=self.registry)
        gauge = partial(Gauge, namespace=PREFIX, registry=self.registry)
        self._requests = counter("requests", "Requests answered.", ["api", "error"])
        self._latency = CountedHistogram(
            f"{PREFIX}_request_latency_seconds",
            "Time from a request's append to its response, including the wait for other members.",
            "api",
            registry=self.registry,
            buckets=LATENCY_BUCKETS,
        )
        self._rejects = counter("rejects", "Records written to the rejects topic.", ["cause"])
        self._phases = Histogram(
            "batch_phase_seconds",
            "Duration of a batch by Spark's phases; triggerExecution is the whole batch.",
            ["phase"],
            namespace=PREFIX,
            registry=self.registry,
            buckets=BATCH_BUCKETS,
        )
        self.slow_batches = counter(
            "slow_batches", "Batches that took more than 400 ms, by what they waited for.", ["cause"]
        )
        self._backlog = gauge("backlog_requests", "Requests appended but not yet read.")
        self._backlog_seconds = gauge("backlog_seconds", "Time to work the backlog off at the last batch's rate.")
        self._clocks = ClockComparison()
        self._skew = gauge(
            "clock_skew_seconds",
            "How far brokers' clocks are at least ahead of the driver's (negative: behind), as far as it is certain.",
        )
        self._last_batch = gauge("last_batch_id", "The newest completed batch.")
        self.groups = GroupGauges(self.registry)
        gauge("active", "1 while the query of this job runs.").set_function(lambda: self.is_active)
        gauge("standby", "1 while this job stands by for another one.").set_function(lambda: self.stands_by)
        gauge("warm", "1 when answers are about as fast as later.").set_function(lambda: self.is_warm)
        self._counters = {name: counter(name, text) for name, text in COUNTERS.items()}
        moved_back = counter("offsets_moved_back", "Partitions whose committed offset became lower.", ["cause"])
        # A series that is there from the start shows its first increase.
        self._moved_back = {cause: moved_back.labels(cause) for cause in (COMMIT, RESET)}
        self._reader_alive = gauge("reader_alive", "1 while the thread that feeds these metrics runs.", ["reader"])
        self._reader_failures = counter("reader_failures", "Exceptions that made a reader start again.", ["reader"])
        self.unreadable_directory_records = gauge(
            "unreadable_directory_records", "Records of the directory topic that the gauges of groups leave out."
        )
        show_skipped_records(self.registry, PREFIX)
        self.last_counted_batch = -1
        self.batches = 0
        """How many batches this process has counted."""
        self.has_warmed_up = False
        """Whether the job has run batches for long enough while it stood by."""
        self.stands_by = False
        self.active_since: float | None = None
        self.brokers_away = False
        self.query_started_at: float | None = None
        self.last_batch_at: float | None = None
        self.waiting_since: float | None = None
        self.answered_at: float | None = None
        self._read_until: Mapping[int, int] = {}
        self.backlog = Backlog(0, 0.0)
        self.skew_seconds = 0.0
        self.readers: dict[str, Callable[[], bool]] = {}
        """By name of a reader: whether its thread runs."""

    @property
    def is_active(self) -> bool:
        """Whether the query has started, and neither another job nor the brokers keep it waiting."""
        return self.query_started_at is not None and not self.stands_by and not self.brokers_away

    @property
    def is_warm(self) -> bool:
        """Whether answers are about as fast as they will be later."""
        return self.has_warmed_up or self.batches >= WARM_BATCHES

    def add_reader(self, reader: str, is_alive: Callable[[], bool]) -> None:
        """Show whether a reader's thread runs, from now on."""
        self.readers[reader] = is_alive
        self._reader_failures.labels(reader)
        self._reader_alive.labels(reader).set_function(is_alive)

    def count_reader_failure(self, reader: str) -> None:
        """Count an exception in a reader, which starts again after it."""
        self._reader_failures.labels(reader).inc()

    def count_batch(self, progress: Progress) -> None:
        """Count a completed batch, unless it was counted before."""
        if progress.batch_id <= self.last_counted_batch:
            return
        self.last_counted_batch = progress.batch_id
        self.batches += 1
        self.last_batch_at = time.monotonic()
        self._read_until = progress.read_until
        self._last_batch.set(progress.batch_id)
        for phase, duration in progress.duration_ms.items():
            self._phases.labels(phase).observe(duration / 1000)
        self.backlog = backlog_after([progress])
        self._backlog.set(self.backlog.requests)
        self._backlog_seconds.set(self.backlog.seconds)
        totals = progress.totals()
        self._measure_skew(progress, totals, self.backlog.requests)
        batch_ms = sum(progress.duration_ms.get(phase, 0) for phase in PHASES_UNTIL_ANSWERED)
        for each in totals:
            self._count(each, batch_ms)

    def note_ends(self, ends: Mapping[int, int]) -> None:
        """Note the ends of the requests' partitions: whether there is something that no batch has read, and since when.

        Any thread may call it.
        """
        if all(end <= self._read_until.get(partition, 0) for partition, end in ends.items()):
            self.waiting_since = None
        elif self.waiting_since is None:
            self.waiting_since = time.monotonic()

    def note_standby(self, stands_by: bool) -> None:
        """Note that the job waits while another one is active, or that its wait has ended."""
        self.stands_by = stands_by
        self.active_since = time.monotonic()

    def note_warm_up(self) -> None:
        """Note that the job has run batches for long enough while it stood by."""
        self.has_warmed_up = True

    def note_brokers_away(self) -> None:
        """Note that no broker answers: the query is stopped, and starts again when they do."""
        self.brokers_away = True

    def note_query_start(self) -> None:
        """Note that the query has started, for the first time or again."""
        self.brokers_away = False
        self.query_started_at = time.monotonic()

    def note_answer(self) -> None:
        """Note that Spark's JVM answers."""
        self.answered_at = time.monotonic()

    def _measure_skew(self, progress: Progress, totals: list[Totals], unread: int) -> None:
        waits = [request.waited_ms for each in totals for request in each.requests if request.api not in MAY_BE_PARKED]
        skew_ms = self._clocks.skew_ms(progress.batch_id, progress.timestamp, waits, unread)
        if skew_ms is not None:
            self.skew_seconds = skew_ms / 1000
            self._skew.set(self.skew_seconds)

    def _count(self, totals: Totals, batch_ms: int) -> None:
        requests: dict[tuple[str, int], int] = {}
        for api, error_code, waited_ms, count in map(msgspec.structs.astuple, totals.requests):
            requests[api, error_code] = requests.get((api, error_code), 0) + count
            self._latency.observe(api, (max(0, waited_ms) + batch_ms) / 1000, count)
        for (api, error_code), count in requests.items():
            self._requests.labels(api, Error(error_code).name).inc(count)
        for reject in totals.rejects:
            self._rejects.labels(reject.cause).inc(reject.count)
        for name, counter in self._counters.items():
            counter.inc(getattr(totals, name))
        for cause, count in totals.offsets_moved_back.items():
            self._moved_back[cause].inc(count)
